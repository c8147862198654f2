"""Guards have nothing to say of an agent that is well: false findings teach to look away."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from han_solo.daemon.services import build_load_capture
from han_solo.memory.passage_model import Draft
from han_solo.memory.passages import Passages
from han_solo.memory.vector_health import VectorCare
from han_solo.reconcile.spec import load_spec
from han_solo.settings import Settings
from tests.integration.embedding_service import EmbeddingService
from tests.integration.guard_fixtures import GuardWorld, open_guard_world
from tests.integration.memory_fixtures import REN
from tests.integration.replays.block_presence import SCOTT
from tests.integration.turn_fixtures import script
from tests.servers import LettaServer
from tests.unit.transcript_lines import GOOD, join

SHIPPED = load_spec(model="openai-proxy/rehearsal")


@pytest.fixture
async def world(
    letta_server: LettaServer, letta_actor: Mapping[str, str], database_url: str, tmp_path: Path
) -> AsyncIterator[GuardWorld]:
    """Yield an agent of the shipped spec, as ``up`` makes it, with a memory and transcripts."""
    async with open_guard_world(letta_server, letta_actor, database_url, spec=SHIPPED) as opened:
        db, service = opened.lab.services.db, EmbeddingService()
        await Passages(db, service.open_vectors(db)).insert(REN, Draft(text="A heron."))
        (tmp_path / "-srv-demo").mkdir()
        (tmp_path / "-srv-demo" / "s.jsonl").write_bytes(join(*GOOD))
        settings = Settings(_env_file=None, transcripts=(tmp_path,))
        opened.services = dataclasses.replace(
            opened.services,
            vectors=VectorCare(db, lambda: service.open_vectors(db)),
            load_capture=build_load_capture(settings, db, opened.services.clock),
        )
        yield opened


async def _list_findings(world: GuardWorld) -> dict[str, list[str]]:
    """Run every guard once; return the summaries of what each found."""
    found = {name: await world.check(name) for name in world.guards}
    return {name: [one.summary for one in seen] for name, seen in found.items() if seen}


async def test_a_fresh_agent_is_well(world: GuardWorld) -> None:
    assert await _list_findings(world) == {}


async def test_an_agent_that_talks_and_writes_is_well(world: GuardWorld) -> None:
    call = {"call": "tool_00", "args": {"a": "x"}}
    await world.services.turns.send("Hello.", sender="test")
    await world.services.turns.send(script(call, call, {"say": "Done."}), sender="test")
    blocks = world.blocks_of(SCOTT)
    await blocks.inspect()
    await blocks.append("project_state", "han-solo 1.4 runs.")
    await blocks.write("session_state", "A session runs.")
    await blocks.restore("session_state", 1)

    assert await _list_findings(world) == {}


async def test_an_answer_that_was_cut_off_is_no_silence(world: GuardWorld) -> None:
    cut = {"say": "Half an", "finish": "length"}
    await world.services.turns.send(script(cut), sender="test")

    assert await world.check("silent_agent") == ()


async def test_a_write_under_way_is_no_edit_around_us(world: GuardWorld) -> None:
    """The text is in Letta a moment before its version is recorded; a look may fall in between."""
    blocks = world.blocks_of(SCOTT)
    await blocks.write("project_state", "0")

    async def write() -> None:
        for number in range(1, 25):
            await blocks.write("project_state", str(number))

    writing = asyncio.create_task(write())
    looks = 0
    try:
        while not writing.done():
            assert await world.check("block_outside_edit") == ()
            looks += 1
    finally:
        await writing

    assert looks > 5


async def test_what_the_spec_leaves_open_is_not_compared(world: GuardWorld) -> None:
    world.use(spec=dataclasses.replace(SHIPPED, system=None, blocks=()))
    await world.patch_agent(system="You are somebody. Search when it is needed.")

    for name in ("block_presence", "step_budget", "model_settings"):
        assert await world.check(name) == (), name
