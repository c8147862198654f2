"""A daemon that starts undoes a switch whose process was killed between the two plans."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.integration.daemon_fixtures import open_installation
from tests.integration.switch_fixtures import KEY, SECOND, WINDOW, run_model


async def test_a_daemon_undoes_what_a_killed_switch_left(
    tmp_path: Path, letta_server: Any, letta_actor: Mapping[str, str], database_url: str
) -> None:
    async with (
        open_installation(tmp_path, letta_server, letta_actor, database_url) as place,
        run_model("second") as url,
    ):
        await place.gateway.add_provider("second", "openai", KEY, url)
        before = await place.config()
        job = {
            "base_url": letta_server.base_url,
            "actor": dict(letta_actor),
            "database_url": database_url,
            "agent_id": place.agent_id,
            "name": await place.db.fetchval("SELECT name FROM han_solo.agents"),
            "handle": SECOND,
            "window": WINDOW,
        }
        command = ("-m", "tests.integration.switch_starter", json.dumps(job))
        killed = await asyncio.create_subprocess_exec(
            sys.executable, *command, "after patch_llm_config"
        )
        assert await killed.wait() == -signal.SIGKILL
        assert (await place.config())["handle"] == SECOND

        await place.start()

        async def is_settled() -> bool:
            return bool(await place.db.fetchval("SELECT outcome FROM han_solo.switches"))

        await place.wait(is_settled)
        assert await place.config() == before
        assert await place.db.fetchval("SELECT outcome FROM han_solo.switches") == "undone"
