"""A guard whose check finds nothing, or whose remedy does nothing, is noticed by its replay.

Every guard of the registry is cut out twice. A replay that still passes asserts too little: the
guard could break and no test would say so.
"""

from __future__ import annotations

from typing import Any

import pytest

from han_solo.loader import load_registry
from tests.integration.guard_fixtures import load_replay, open_guard_world

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

MUTANTS = [
    pytest.param(guard.name, part, id=f"{guard.name} without its {part}")
    for guard in load_registry().guards
    for part in ("check", "remedy")
    if part == "check" or guard.remedy is not None
]

NOTICED = (AssertionError, LookupError, ValueError)
"""What a replay raises that finds the world otherwise: a failed assertion, or a finding that is not
there to be taken. An error of Letta or of the database is none of them."""


@pytest.mark.parametrize(("name", "part"), MUTANTS)
async def test_a_guard_that_is_cut_out_fails_its_replay(
    name: str, part: str, letta_server: Any, letta_actor: Any, database_url: str
) -> None:
    replay = load_replay(name)
    async with open_guard_world(letta_server, letta_actor, database_url, **replay.options) as world:
        world.mutate(name, **{part: True})
        with pytest.raises(NOTICED):
            await replay.run(world)
