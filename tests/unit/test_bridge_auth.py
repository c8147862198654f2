"""Who may reach which route and which tool: the table, walked."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from han_solo.bridge.auth import OPEN_PATHS, authenticate
from han_solo.bridge.routes import build_routes
from han_solo.errors import DatabaseUnavailable, Unauthenticated, UsageError
from han_solo.principals import KIND_SCOPES, SCOPES, is_shown

from . import bridge_fakes as fakes

ROUTES = [
    (route.method, route.path, route.scope) for route in build_routes(fakes.backend(), tool_count=0)
] + [("POST", "/mcp", None), ("GET", "/mcp", None), ("GET", "/not-there", None)]
CLOSED = [route for route in ROUTES if route[1] not in OPEN_PATHS]
TOOLS = {spec.name: spec for spec in fakes.SPECS}
ARGUMENTS = {"echo": {"text": "a"}, "make_card": {"title": "a"}, "write_long": {"length": 1}}
RAISING = {"find_missing": "There is no card", "break_down": "fault"}

REFUSED_HEADERS = {
    "no token": {},
    "an empty token": {"Authorization": "Bearer "},
    "a wrong token": {"Authorization": "Bearer hs_abcdefgh_wrong"},
    "a revoked token": {"Authorization": "Bearer revoked"},
    "another scheme": {"Authorization": "Basic good-operator"},
    "the bare token": {"Authorization": "good-operator"},
}


@pytest.mark.parametrize(("method", "path", "_scope"), CLOSED)
@pytest.mark.parametrize("case", REFUSED_HEADERS)
async def test_route_is_closed_without_a_token_of_ours(method, path, _scope, case):
    backend = fakes.backend()
    async with fakes.serving(backend) as client:
        response = await client.request(method, path, headers=REFUSED_HEADERS[case])
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.json()["error"].endswith(".")
    assert backend.syncs == 0


@pytest.mark.parametrize(("method", "path", "scope"), [r for r in CLOSED if r[2]])
async def test_route_is_closed_to_a_token_of_too_small_a_scope(method, path, scope):
    backend = fakes.backend()
    too_small = [kind for kind in ("agent", "client") if scope not in KIND_SCOPES[kind]]
    for kind in too_small:
        backend.principals[kind] = fakes.principal(kind)
    backend.principals["small"] = fakes.principal("operator", set(SCOPES) - {scope})
    async with fakes.serving(backend) as client:
        for token in (*too_small, "small"):
            response = await client.request(method, path, headers=fakes.bearer(token))
            assert response.status_code == 403
            assert scope in response.json()["error"]
            assert response.json()["hint"]
        assert backend.syncs == 0
        response = await client.request(method, path, headers=fakes.bearer("good-operator"))
        assert response.status_code == 200


def test_every_route_but_the_probes_names_a_scope():
    unguarded = {route.path for route in build_routes(fakes.backend(), tool_count=0)
                 if route.scope is None}  # fmt: skip
    assert unguarded == OPEN_PATHS


@pytest.mark.parametrize("path", sorted(OPEN_PATHS))
async def test_probe_answers_without_a_token_and_while_tokens_can_not_be_read(path):
    backend = fakes.backend()
    backend.error = DatabaseUnavailable("Postgres does not answer.")
    async with fakes.serving(backend) as client:
        assert (await client.get(path)).status_code == 200
        assert (await client.get(path, headers=fakes.bearer("x"))).status_code == 200


@pytest.mark.parametrize(("method", "path", "_scope"), CLOSED)
async def test_database_away_is_503_and_never_401(method, path, _scope):
    backend = fakes.backend()
    backend.error = DatabaseUnavailable("Postgres does not answer.")
    async with fakes.serving(backend) as client:
        response = await client.request(method, path, headers=fakes.bearer("good-operator"))
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert backend.syncs == 0


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("token", [None, "hs_abcdefgh_wrong", "revoked"])
async def test_tool_is_closed_without_a_token_of_ours(name, token):
    async with fakes.serving(fakes.backend()) as client:
        response = await fakes.rpc(client, "tools/call", token, name=name, arguments={})
    assert response.status_code == 401


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("kind", KIND_SCOPES)
async def test_tool_is_shown_and_callable_by_audience_and_scope(name, kind):
    spec = TOOLS[name]
    backend = fakes.backend()
    backend.principals["small"] = fakes.principal(kind, KIND_SCOPES[kind] - {spec.scope})
    async with fakes.serving(backend) as client:
        shown = await fakes.list_names(client, f"good-{kind}")
        worked, text = await fakes.call(client, f"good-{kind}", name, **ARGUMENTS.get(name, {}))
        if is_shown(spec.audience, kind):
            assert name in shown
            assert worked is (name not in RAISING)
            assert RAISING.get(name, "") in text
        else:
            assert name not in shown
            assert (worked, text[:14]) == (False, "There is no to")

        assert name not in await fakes.list_names(client, "small")
        worked, text = await fakes.call(client, "small", name, **ARGUMENTS.get(name, {}))
        assert not worked
        if is_shown(spec.audience, kind):
            assert f"does not have the scope {spec.scope}" in text


async def test_unknown_tool_is_refused_in_the_words_of_one_that_is_not_shown():
    async with fakes.serving(fakes.backend()) as client:
        _, hidden = await fakes.call(client, "good-agent", "erase_all")
        _, unknown = await fakes.call(client, "good-agent", "erase_some")
    assert hidden.replace("erase_all", "erase_some") == unknown


async def test_agents_id_is_believed_only_with_an_agents_token():
    header = {"x-agent-id": "agent-0a1b"}
    async with fakes.serving(fakes.backend()) as client:
        texts = {
            kind: (await fakes.call(client, f"good-{kind}", "echo", headers=header, text="a"))[1]
            for kind in KIND_SCOPES
        }
    assert texts == {
        "agent": "the-agent agent agent-0a1b: a light",
        "client": "the-client client None: a light",
        "operator": "the-operator operator None: a light",
    }


async def test_agents_id_of_another_form_is_refused():
    headers = Headers({"authorization": "Bearer good-agent", "x-agent-id": "agent-1; drop"})
    with pytest.raises(UsageError):
        await authenticate(headers, fakes.tokens())


async def test_two_authorization_headers_are_refused():
    raw = [(b"authorization", b"Bearer good-agent"), (b"authorization", b"Bearer good-operator")]
    with pytest.raises(Unauthenticated):
        await authenticate(Headers(raw=raw), fakes.tokens())
