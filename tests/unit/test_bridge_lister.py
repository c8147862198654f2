"""The live list, read over HTTP."""

from __future__ import annotations

import httpx
import pytest
import respx

from han_solo.bridge.lister import list_live_tools
from han_solo.errors import BridgeError
from han_solo.registry import ListedTool

URL = "http://127.0.0.1:8283/mcp"


def page(*names: str, cursor: str | None = None) -> httpx.Response:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return httpx.Response(200, json={"result": {"tools": tools, "nextCursor": cursor}})


@respx.mock
async def test_every_page_is_read():
    route = respx.post(URL).mock(side_effect=[page("b", cursor="more"), page("a")])
    assert await list_live_tools(URL, "t") == (
        ListedTool("a", "", {"type": "object"}),
        ListedTool("b", "", {"type": "object"}),
    )
    assert b'"cursor":"more"' in route.calls[1].request.content.replace(b" ", b"")
    assert route.calls[0].request.headers["authorization"] == "Bearer t"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(401, json={"error": "No."}), "refuses the token (401)"),
        (httpx.Response(403, json={"error": "No."}), "refuses the call (403): No."),
        (httpx.Response(503, json={"error": "Postgres is away."}), "503: Postgres is away."),
        (httpx.Response(502, text="<html>"), "502: Bad Gateway."),
        (httpx.Response(200, text="<html>"), "is not the bridge"),
        (httpx.Response(200, json=[]), "is not the bridge"),
        (httpx.Response(200, json={"result": []}), "is not the bridge"),
        (httpx.Response(200, json={"result": {}}), "is not the bridge"),
        (httpx.Response(200, json={"result": {"tools": [{}]}}), "is not the bridge"),
        (httpx.Response(200, json={"error": {"code": -32600}}), "is not the bridge"),
    ],
)
@respx.mock
async def test_what_is_no_list_is_one_sentence_without_the_token(answer, said):
    respx.post(URL).mock(return_value=answer)
    with pytest.raises(BridgeError) as caught:
        await list_live_tools(URL, "hs_abcdefgh_secret")
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("status", "helps"), [(401, "makes a good one"), (403, "A new token does not help")]
)
@respx.mock
async def test_a_refusal_says_whether_a_new_token_helps(status, helps):
    respx.post(URL).mock(return_value=httpx.Response(status, json={"error": "No."}))
    with pytest.raises(BridgeError) as caught:
        await list_live_tools(URL, "t")
    assert helps in caught.value.hint


@pytest.mark.parametrize("error", [httpx.ConnectError("x"), httpx.ReadTimeout("x")])
@respx.mock
async def test_a_bridge_that_does_not_answer_is_said(error):
    respx.post(URL).mock(side_effect=error)
    with pytest.raises(BridgeError, match=r"does not answer \((ConnectError|ReadTimeout)\)"):
        await list_live_tools(URL, "t")


async def test_an_address_that_is_none_is_said():
    with pytest.raises(BridgeError):
        await list_live_tools("bridge.example/mcp", "t")
