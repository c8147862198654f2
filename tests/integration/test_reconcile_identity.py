"""Which agent: made once, found again, never made in place of one that is gone. Real Postgres."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

from han_solo.errors import AgentGone, LettaUnavailable, StoreError, UsageError
from han_solo.reconcile.ensure import ensure_ren_tools
from han_solo.reconcile.identity import ensure_agent, find_agent_id
from han_solo.reconcile.journal import Journal, hold_lock
from han_solo.reconcile.services import ReconcileServices
from tests.integration.store_fixtures import migrated
from tests.unit.fake_letta import Bridge, FakeLetta
from tests.unit.reconcile_world import SPEC, TOKEN, URL, listed


@pytest.fixture
def letta() -> FakeLetta:
    tools = (listed("alpha"), listed("beta"))
    return FakeLetta(bridges={URL: Bridge(tools, TOKEN)})


@pytest.fixture
async def services(database_url: str, letta: FakeLetta) -> AsyncIterator[ReconcileServices]:
    async def list_live(url: str, token: str) -> Any:
        return letta.bridges[url].tools

    async with migrated(database_url) as db:
        yield ReconcileServices(
            gateway=letta,
            db=db,
            spec=dataclasses.replace(SPEC, name="ren"),
            declared=letta.bridges[URL].tools,
            bridge_name="han-solo",
            bridge_url=URL,
            local_url=URL,
            read_token=lambda: TOKEN,
            list_live=list_live,
        )


async def test_an_agent_is_made_once_and_its_id_kept(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    made = await ensure_agent(services)

    assert await ensure_agent(services) == made
    assert [(a.id, a.tags) for a in letta.agents.values()] == [(made, ("han-solo:ren",))]


async def test_looking_for_the_agent_makes_none(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    assert await find_agent_id(services) is None
    assert letta.agents == {}


async def test_many_that_start_at_once_make_one_agent(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    found = await asyncio.gather(*(ensure_agent(services) for _ in range(5)))

    assert len(set(found)) == 1
    assert len(letta.agents) == 1


async def test_an_agent_made_before_a_crash_is_found_by_its_tag(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    before = letta.add_agent("ren", tags=("han-solo:ren",))

    assert await ensure_agent(services) == before
    assert await services.known.load_agent_id() == before
    assert len(letta.agents) == 1


async def test_an_agent_of_the_name_that_is_not_ours_is_not_taken(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    theirs = letta.add_agent("ren")

    with pytest.raises(UsageError, match=f"HAN_SOLO_AGENT_ID={theirs}"):
        await ensure_agent(services)

    assert len(letta.agents) == 1


async def test_two_agents_of_our_tag_are_a_question(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    letta.add_agent("ren", tags=("han-solo:ren",))
    letta.add_agent("ren", tags=("han-solo:ren",))

    with pytest.raises(UsageError, match="2 agents"):
        await ensure_agent(services)


async def test_a_known_agent_that_is_gone_stops_the_sync_and_none_is_made(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    await ensure_agent(services)
    letta.agents.clear()

    with pytest.raises(AgentGone):
        await ensure_ren_tools(services)

    assert letta.agents == {}


async def test_a_letta_that_is_away_is_not_an_agent_that_is_gone(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    made = await ensure_agent(services)
    letta.fail["fetch_agent"] = LettaUnavailable("away")

    with pytest.raises(LettaUnavailable):
        await ensure_ren_tools(services)

    assert await services.known.load_agent_id() == made


async def test_an_operators_own_agent_is_taken_over(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    theirs = letta.add_agent("theirs")
    services = dataclasses.replace(services, agent_id=theirs)

    assert await ensure_agent(services) == theirs
    assert await services.known.load_agent_id() == theirs


async def test_an_agent_id_that_letta_does_not_know_is_not_taken_over(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    services = dataclasses.replace(services, agent_id="agent-none")

    with pytest.raises(AgentGone):
        await ensure_agent(services)

    assert await services.known.load_agent_id() is None
    assert letta.agents == {}


async def test_two_ids_of_one_agent_that_are_both_there_are_a_question(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    made = await ensure_agent(services)
    other = letta.add_agent("other")

    with pytest.raises(UsageError, match=f"{other}.*{made}"):
        await ensure_agent(dataclasses.replace(services, agent_id=other))

    assert await services.known.load_agent_id() == made


async def test_the_operator_may_name_another_agent_once_the_known_one_is_gone(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    await ensure_agent(services)
    letta.agents.clear()
    restored = letta.add_agent("ren")

    found = await ensure_agent(dataclasses.replace(services, agent_id=restored))

    assert found == restored
    assert await services.known.load_agent_id() == restored


async def test_a_model_that_letta_does_not_have_is_named_with_those_it_has(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    model = dataclasses.replace(SPEC.model, handle="google_ai/gemini-2.5-flash")
    services = dataclasses.replace(services, spec=dataclasses.replace(SPEC, model=model))
    letta.fail["create_agent"] = LettaUnavailable("handle not found")

    with pytest.raises(UsageError, match=r"no model google_ai.*openai-proxy/rehearsal"):
        await ensure_agent(services)


async def test_the_journal_tells_a_runs_steps_in_order(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    outcome = await ensure_ren_tools(services)

    (run,) = await services.journal.load_runs()
    steps = await services.journal.load_steps(run.run_id)
    assert (run.run_id, run.outcome, run.error) == (outcome.run_id, "done", None)
    assert run.finished_at is not None
    assert [(step.position, step.kind, step.outcome) for step in steps] == [
        (0, "register_server", "done"),
        (1, "attach_tool", "done"),
        (2, "attach_tool", "done"),
    ]


async def test_a_sync_without_anything_to_do_leaves_no_run(services: ReconcileServices) -> None:
    await ensure_ren_tools(services)
    await ensure_ren_tools(services)

    assert len(await services.journal.load_runs()) == 1


async def test_a_failed_run_says_why(services: ReconcileServices, letta: FakeLetta) -> None:
    letta.fail["attach_tool"] = LettaUnavailable("Letta went away.")

    with pytest.raises(LettaUnavailable):
        await ensure_ren_tools(services)

    (run,) = await services.journal.load_runs()
    assert (run.outcome, run.error) == ("failed", "Letta went away.")


async def test_the_run_of_a_process_that_died_is_closed_as_abandoned(
    services: ReconcileServices,
) -> None:
    await services.journal.open_run("agent-1", {"steps": []})

    await ensure_ren_tools(services)

    assert [run.outcome for run in await services.journal.load_runs()] == ["done", "abandoned"]


async def test_a_server_that_moved_and_got_a_new_token_is_remembered_as_ours(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    await ensure_ren_tools(services)
    moved = "http://moved.test/mcp"
    letta.bridges[moved] = Bridge(services.declared, "hs_new")

    outcome = await ensure_ren_tools(
        dataclasses.replace(
            services, bridge_url=moved, local_url=moved, read_token=lambda: "hs_new"
        )
    )

    assert outcome.in_sync
    assert letta.servers["han-solo"].url == moved


async def test_the_token_is_not_in_the_journal(
    services: ReconcileServices, database_url: str
) -> None:
    await ensure_ren_tools(services)

    async with services.db.connection() as connection:
        runs = await connection.fetch("SELECT * FROM han_solo.reconcile_runs")
        steps = await connection.fetch("SELECT * FROM han_solo.reconcile_steps")
    assert TOKEN not in str([dict(row) for row in (*runs, *steps)])


async def test_who_waits_too_long_for_the_lock_is_told_so(services: ReconcileServices) -> None:
    async with hold_lock(services.db, "ren", clock=services.clock):
        with pytest.raises(StoreError, match="Another process has been syncing 'ren'"):
            async with hold_lock(services.db, "ren", clock=services.clock, wait_s=0):
                pass


async def test_agents_of_two_names_do_not_wait_for_each_other(
    services: ReconcileServices,
) -> None:
    async with (
        hold_lock(services.db, "ren", clock=services.clock, wait_s=0),
        hold_lock(services.db, "maya", clock=services.clock, wait_s=0),
    ):
        assert isinstance(services.journal, Journal)


async def test_the_lock_is_given_back_when_the_sync_fails(
    services: ReconcileServices, letta: FakeLetta
) -> None:
    letta.fail["attach_tool"] = LettaUnavailable("away")
    with pytest.raises(LettaUnavailable):
        await ensure_ren_tools(services)
    letta.fail.clear()

    assert (await ensure_ren_tools(services)).in_sync
