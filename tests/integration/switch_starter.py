"""A process that switches a model and kills itself at a point, for the tests of what is left then.

``-m tests.integration.switch_starter JOB POINT``: JOB is JSON with the addresses; POINT is the name
of a call of the gateway with ``before`` or ``after`` in front, such as ``after patch_llm_config``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys

from han_solo.clock import Clock
from han_solo.reconcile.switch.config import Asked
from han_solo.reconcile.switch.preflight import Wanted
from han_solo.reconcile.switch.run import switch_model
from han_solo.reconcile.switch.services import SwitchServices
from han_solo.store.database import Database
from han_solo.turns.silence import find_cause
from tests.contract.actor import open_gateway
from tests.integration.switch_fixtures import SPEC, FaultyGateway


async def main() -> None:
    job, point = json.loads(sys.argv[1]), sys.argv[2]
    when, name = point.split()
    gateway, _ = open_gateway(job["base_url"], job["actor"])
    faulty = FaultyGateway(gateway)

    async def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    (faulty.before if when == "before" else faulty.after)[name] = die
    db = await Database.connect(job["database_url"])
    spec = dataclasses.replace(SPEC, name=job["name"])
    services = SwitchServices(faulty, db, spec, find_cause, Clock())  # type: ignore[arg-type]
    await switch_model(services, job["agent_id"], Wanted(job["handle"], Asked(job.get("window"))))


if __name__ == "__main__":
    asyncio.run(main())
