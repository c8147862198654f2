"""A process that sends messages to an agent, for tests of turns across processes.

Started with one JSON argument: where the servers are, the agent, and the messages, which are all
sent at once. It prints a line of JSON for each that ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from han_solo import logs
from han_solo.errors import HanSoloError
from han_solo.store.database import Database
from han_solo.turns.service import Turns
from tests.contract.actor import open_gateway


async def main(job: dict[str, Any]) -> None:
    gateway, _ = open_gateway(job["base_url"], job["actor"])
    db = await Database.connect(job["database_url"])
    turns = Turns(db, gateway, job["agent_id"], gap_s=job["gap_s"], wait_s=job["wait_s"])
    async with gateway:
        await asyncio.gather(*(send(turns, job["sender"], text) for text in job["messages"]))
    await db.close()


async def send(turns: Turns, sender: str, text: str) -> None:
    try:
        reply = await turns.send(text, sender=sender)
        said = {"turn_id": str(reply.turn_id), "text": reply.text}
    except HanSoloError as error:
        said = {"error": type(error).__name__, "message": error.message}
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logs.configure(level="warning", fmt="json")
    asyncio.run(main(json.loads(sys.argv[1])))
