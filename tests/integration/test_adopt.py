"""Bringing in an agent that Letta has, on the real Letta and the real Postgres."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid

import httpx
import pytest

from han_solo.blocks.versions import BlockVersions
from han_solo.cli import adopt_session
from han_solo.cli.adopt_session import SOURCE, AdoptSession
from han_solo.clock import Clock
from han_solo.embed.weights import fetch_weights
from han_solo.errors import LettaUnavailable
from han_solo.letta.gateway import LettaGateway
from han_solo.memory.opening import open_passages
from han_solo.settings import Settings
from tests.contract.actor import open_gateway
from tests.integration.store_fixtures import migrated

from .memory_fixtures import REN

MODEL = "openai-proxy/rehearsal"
MAIN = "from han_solo.cli.main import main; main()"
SAME_TIME = "2025-01-02T03:04:05Z"
ODD = ("\U0001f469\u200d\U0001f467 emoji", "שלום עולם", "x" * 6_000, 'a "quote" \\ {b}\r\n\tc')


@pytest.fixture
async def http(letta_server, letta_actor):
    async with httpx.AsyncClient(
        base_url=letta_server.base_url, headers=letta_actor, timeout=60
    ) as client:
        yield client


@pytest.fixture
async def opened(letta_server, letta_actor):
    gateway, transport = open_gateway(letta_server.base_url, letta_actor)
    async with gateway:
        yield gateway, transport


@pytest.fixture
def gateway(opened):
    return opened[0]


@pytest.fixture
async def db(database_url):
    async with migrated(database_url) as db:
        yield db


@pytest.fixture
async def session(gateway, db, tmp_path, cache):
    await fetch_weights(cache, lambda _word: None)
    settings = Settings(_env_file=None, home=tmp_path / "home", cache=cache)
    clock = Clock()
    passages = open_passages(settings, db, clock)
    yield AdoptSession(settings, gateway, db, passages, BlockVersions(db, clock), clock)
    await passages.vectors.close()


async def remember(http, agent_id, text, tags=(), at=SAME_TIME):
    answer = await http.post(
        f"/v1/agents/{agent_id}/archival-memory",
        json={"text": text, "tags": list(tags), "created_at": at},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()[0]["id"]


async def make_agent(gateway, http, passages=0):
    """Make an agent as somebody had it before: blocks, tools of Letta's and its own, passages."""
    shared = await gateway.create_block("shared", "Both know it.", limit=500)
    fixed = await gateway.create_block("fixed", "It stays.", limit=500, read_only=True)
    await gateway.create_agent(name="other", model=MODEL, block_ids=[shared.id])
    builtin = (await http.get("/v1/tools/", params={"name": "memory_insert"})).json()[0]["id"]
    source = 'def mine(a: str) -> str:\n    """Mine.\n\n    Args:\n        a: x\n    """\n'
    custom = (await http.post("/v1/tools/", json={"source_code": source})).json()["id"]
    agent = await gateway.create_agent(
        name="elder", model=MODEL, block_ids=[shared.id, fixed.id], tool_ids=[builtin, custom]
    )
    for number in range(passages):
        await remember(http, agent.id, f"Memory number {number}.", [f"n{number}", "old"])
    return agent


async def look(http, agent_id):
    """Return all that Letta holds of an agent."""
    agent = (await http.get(f"/v1/agents/{agent_id}")).json()
    passages = (await http.get(f"/v1/agents/{agent_id}/archival-memory?limit=1000")).json()
    return agent, passages


async def rows(db, sql):
    async with db.connection() as connection:
        return [dict(row) for row in await connection.fetch(sql)]


async def test_all_of_it_comes_in_once_and_letta_stays_as_it_was(session, gateway, http, db):
    agent = await make_agent(gateway, http, passages=4)
    for text in ODD:
        await remember(http, agent.id, text, at="2024-05-06T07:08:09.123456Z")
    before = await look(http, agent.id)

    plan = await session.plan("elder")

    assert plan.agent.id == agent.id
    assert (len(plan.new), plan.known, plan.unusable) == (8, 0, {})
    assert (plan.new_blocks, plan.known_blocks) == (("fixed", "shared"), ())
    assert (plan.tools.lettas, plan.tools.others) == (("memory_insert",), ("mine",))
    assert plan.tools.ours == ()
    assert {"passage_search", "write_core_memory"} <= set(plan.tools.missing)
    assert not plan.is_managed
    assert await rows(db, "SELECT id FROM memory.passages") == []

    done = await session.carry_out(plan)

    assert (len(done.imported.passage_ids), done.imported.pending) == (8, None)
    assert done.versions == {"fixed": 1, "shared": 1}
    kept = await rows(
        db, "SELECT text, tags, author, source, principal, agent_id, happened_at, created_at"
        " FROM memory.passages ORDER BY id",
    )  # fmt: skip
    given = [(each["text"], sorted(each["tags"] or ()), each["created_at"]) for each in before[1]]
    assert [
        (each["text"], each["tags"], each["happened_at"].isoformat().replace("+00:00", "Z"))
        for each in kept
    ] == given
    assert {text for text, _, _ in given} == {*ODD, *(f"Memory number {n}." for n in range(4))}
    from_whom = ("author", "source", "principal", "agent_id")
    assert {tuple(each[name] for name in from_whom) for each in kept} == {
        ("elder", SOURCE, "elder", agent.id)
    }
    assert all(each["created_at"] == each["happened_at"] for each in kept)
    (hit,) = (await session.passages.search(REN, "memory number 2")).hits[:1]
    assert hit.text == "Memory number 2."
    texts = await rows(
        db, "SELECT block_id, number, value FROM memory.agent_core_block_versions ORDER BY value"
    )
    assert [(each["number"], each["value"]) for each in texts] == [
        (1, "Both know it."), (1, "It stays.")
    ]  # fmt: skip
    assert await look(http, agent.id) == before

    again = await session.plan(agent.id)
    assert (again.new, again.known) == ((), 8)
    assert (again.new_blocks, again.known_blocks) == ((), ("fixed", "shared"))
    await remember(http, agent.id, "New since.")
    again = await session.plan(agent.id)
    assert [item.draft.text for item in again.new] == ["New since."]
    assert (await session.carry_out(again)).versions == {}
    assert len(await rows(db, "SELECT id FROM memory.passages")) == 9


async def test_only_reads_leave_for_letta(session, opened, http):
    gateway, transport = opened
    agent = await make_agent(gateway, http, passages=2)
    transport.sent.clear()
    await session.carry_out(await session.plan(agent.id))
    assert {method for method, _ in transport.sent} == {"GET"}


async def test_an_agent_that_has_nothing_is_no_error(session, gateway):
    agent = await gateway.create_agent(name="bare", model=MODEL)
    plan = await session.plan("bare")
    assert (plan.agent.id, plan.new, plan.known, plan.new_blocks) == (agent.id, (), 0, ())
    done = await session.carry_out(plan)
    assert (done.imported.passage_ids, done.versions) == ((), {})


async def test_one_that_was_cut_short_goes_on(session, gateway, http, db, monkeypatch):
    monkeypatch.setattr(adopt_session, "BATCH", 2)
    agent = await make_agent(gateway, http, passages=5)
    plan = await session.plan(agent.id)

    def stop(_what, _count):
        stop.calls += 1
        if stop.calls == 2:
            raise RuntimeError("cut short")

    stop.calls = 0
    with pytest.raises(ExceptionGroup):
        await session.carry_out(plan, stop)
    assert len(await rows(db, "SELECT id FROM memory.passages")) == 4
    plan = await session.plan(agent.id)
    assert (len(plan.new), plan.known, plan.new_blocks) == (1, 4, ())
    await session.carry_out(plan)
    kept = await rows(db, "SELECT text FROM memory.passages ORDER BY id")
    assert sorted(each["text"] for each in kept) == [f"Memory number {n}." for n in range(5)]
    assert (await session.passages.vectors.state()).stale == 0


@pytest.mark.parametrize("page_rows", [2, 3, 4, 7, 8, 50])
async def test_pages_of_any_length_hold_each_passage_once(gateway, http, page_rows):
    agent = await gateway.create_agent(name="elder", model=MODEL)
    given = [await remember(http, agent.id, f"n {n}") for n in range(7)]
    found = [each.id async for each in gateway.read_archival(agent.id, page_rows=page_rows)]
    assert sorted(found) == sorted(given)


@pytest.mark.parametrize("gone", [1, 2])
async def test_a_passage_deleted_meanwhile_is_not_taken_for_the_end(gateway, http, gone):
    agent = await gateway.create_agent(name="elder", model=MODEL)
    for number in range(7):
        await remember(http, agent.id, f"n {number}")
    seen = []

    async def read():
        async for each in gateway.read_archival(agent.id, page_rows=3):
            seen.append(each.id)
            if len(seen) == 3:
                await http.delete(f"/v1/agents/{agent.id}/archival-memory/{seen[gone]}")

    with pytest.raises(LettaUnavailable, match="changed while it was read"):
        await read()


async def test_what_can_not_be_kept_is_named_and_costs_nothing_else(session, gateway, http):
    agent = await gateway.create_agent(name="elder", model=MODEL)
    blank = await remember(http, agent.id, " \n ")
    tagged = await remember(http, agent.id, "Tagged.", ["t" * 201])
    await remember(http, agent.id, "Good.")
    plan = await session.plan(agent.id)
    assert [item.draft.text for item in plan.new] == ["Good."]
    assert plan.unusable.keys() == {blank, tagged}
    assert "empty" in plan.unusable[blank]
    assert "at most 200" in plan.unusable[tagged]


# As an operator runs it


@pytest.fixture
async def desk(letta_server, database_url, tmp_path, cache):
    """Yield what runs the command, and an agent of its own name among those of other tests."""
    await fetch_weights(cache, lambda _word: None)
    spec = tmp_path / "ren.toml"
    name = f"elder-{uuid.uuid4().hex[:8]}"
    spec.write_text(
        f'[agent]\nname = "{name}-2"\nperson = "Scott"\n[model]\nhandle = "{MODEL}"\n'
        '[system]\ntext = "You are {agent}."\n'
    )
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "COLUMNS": "80",
        "HAN_SOLO_HOME": str(tmp_path / "home"),
        "HAN_SOLO_CACHE": str(cache),
        "HAN_SOLO_DATABASE_URL": database_url,
        "HAN_SOLO_LETTA_BASE_URL": letta_server.base_url,
        "HAN_SOLO_LETTA_PASSWORD": letta_server.password,
        "HAN_SOLO_AGENT_SPEC": str(spec),
    }

    def run(*arguments, **changes):
        return subprocess.run(
            [sys.executable, "-c", MAIN, "adopt", *arguments],
            env=environment | changes,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    run.name = name
    async with LettaGateway.connect(letta_server.base_url, letta_server.password) as gateway:
        block = await gateway.create_block("notes", "What it holds.", limit=100)
        agent = await gateway.create_agent(name=name, model=MODEL, block_ids=[block.id])
        headers = {"Authorization": f"Bearer {letta_server.password}"}
        async with httpx.AsyncClient(base_url=letta_server.base_url, headers=headers) as http:
            await remember(http, agent.id, "The ferry leaves at noon.", ["trips"])
        run.agent_id, run.gateway = agent.id, gateway
        yield run


async def test_it_shows_first_and_does_what_it_showed(desk):
    shown = desk(desk.name, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "1 to import, 0 here already" in shown.stdout
    assert "1 to keep as version 1: notes" in shown.stdout
    assert "of han-solo not there: archive_notecard" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80

    refused = desk(desk.name)
    assert refused.returncode == 2
    assert "Bring it in with --yes" in refused.stderr

    done = desk(desk.name, "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 passage imported, 1 block recorded. Letta is as it was." in done.stdout
    assert f"HAN_SOLO_AGENT_ID={desk.agent_id} han-solo up" in done.stdout

    again = desk("--json", HAN_SOLO_AGENT_ID=desk.agent_id)
    told = json.loads(again.stdout)
    assert told["agent"] == {"id": desk.agent_id, "name": desk.name, "is_managed": True}
    assert (told["passages"]["new"], told["passages"]["known"]) == (0, 1)
    assert (told["blocks"]["new"], told["blocks"]["known"]) == ([], ["notes"])


async def test_what_can_not_be_adopted_is_a_sentence_that_names_what_can(desk):
    nobody = desk()
    assert nobody.returncode == 2
    assert "no agent that this installation looks after yet" in nobody.stderr

    unknown = desk(f"{desk.name}-3")
    assert unknown.returncode == 2
    assert f"has no agent named '{desk.name}-3'" in unknown.stderr

    gone = desk(f"agent-{uuid.uuid4()}")
    assert gone.returncode == 2
    assert "has no agent agent-" in gone.stderr
    assert "Give the id or name of one of these" in gone.stderr

    twin = await desk.gateway.create_agent(name=desk.name, model=MODEL)
    two = desk(desk.name)
    assert two.returncode == 2
    assert "has 2 agents named" in two.stderr
    assert twin.id in two.stderr

    away = desk(desk.name, HAN_SOLO_LETTA_BASE_URL="http://127.0.0.1:9")
    assert away.returncode != 0
    assert "127.0.0.1:9" in away.stderr
    for each in (nobody, unknown, gone, two, away):
        assert each.stderr.startswith("error: ")
        assert "Traceback" not in each.stderr
