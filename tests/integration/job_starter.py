"""A process that runs one job once, for the tests of many starts and of kills."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from han_solo import logs
from han_solo.daemon.jobs import run_job
from han_solo.runs.model import Finished
from tests.integration.job_fixtures import build_job, open_jobs


async def work(_context: Any) -> dict[str, object]:
    print("began", flush=True)
    await asyncio.Event().wait()
    return {}


async def quick(_context: Any) -> dict[str, object]:
    await asyncio.sleep(0.5)
    return {}


async def main() -> None:
    hangs = sys.argv[2:] == ["hang"]
    async with open_jobs(sys.argv[1], lease_s=2.0 if hangs else 60.0, heartbeat_s=0.5) as services:
        job = build_job(work if hangs else quick)
        result = await run_job(services, job, started_by="schedule")
    print(result.run.outcome if isinstance(result, Finished) else result.why)


logs.configure(level="info", fmt="json")  # to stderr
asyncio.run(main())
