"""Every guard replays its incident on the real Letta; one without a replay fails here."""

from __future__ import annotations

from typing import Any

import pytest

from han_solo.loader import load_registry
from tests.integration.guard_fixtures import load_replay, open_guard_world

GUARDS = [guard.name for guard in load_registry().guards]


@pytest.mark.parametrize("name", GUARDS)
async def test_the_incident_is_found_and_what_can_be_repaired_is(
    name: str, letta_server: Any, letta_actor: Any, database_url: str
) -> None:
    replay = load_replay(name)
    async with open_guard_world(letta_server, letta_actor, database_url, **replay.options) as world:
        await replay.run(world)
