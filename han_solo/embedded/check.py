"""``up --check``: one turn of the agent, proved from outside it.

The agent is asked to call a tool over MCP that writes a row. What it says is not believed: the row
is read back from Postgres on a connection of our own.
"""

from __future__ import annotations

import json
import secrets
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from ..blocks.model import CARETAKER, Rights
from ..blocks.service import Blocks
from ..blocks.versions import BlockVersions
from ..bridge.conversation import build_turns
from ..connections import Connections
from ..errors import HanSoloError
from ..letta.gateway import LettaGateway
from ..letta.views import Turn
from ..memory.notecards import Notecards
from ..principals import KIND_SCOPES, Principal
from ..reconcile.spec import load_spec
from ..store.database import Database
from ..turns.silence import SilentTurn

TOOL: Final = "create_notecard"
SENDER: Final = "up --check"
CHECKER: Final = Principal(SENDER, "operator", KIND_SCOPES["operator"])
_MAX_SHOWN_CHARS: Final = 160
_FIND: Final = """
SELECT id, text, creator, status, principal, agent_id, created_at
FROM memory.notecards
WHERE text = $1
"""


class CheckFailed(HanSoloError):
    """The check ran and did not find what it should."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen on the way, in order."""

    agent_id: str
    model: str
    tools_attached: int
    stop_reason: str
    said: str
    returned: str
    row: dict[str, str]

    def lines(self) -> list[tuple[str, str]]:
        """Return label and text of each line to show."""
        return [
            ("agent", f"{self.agent_id} on {self.model}, {self.tools_attached} tools attached"),
            ("tool called", f"{TOOL}, over MCP"),
            ("tool returned", shorten(self.returned)),
            ("agent said", f"{shorten(self.said)} (stop reason {self.stop_reason})"),
            ("row in Postgres", ", ".join(f"{key}={value}" for key, value in self.row.items())),
        ]


def shorten(text: str) -> str:
    """Return the beginning of a text on one line; the row says the rest."""
    return textwrap.shorten(text, _MAX_SHOWN_CHARS, placeholder=" ...")


async def run_check(connections: Connections, agent_id: str) -> Evidence:
    """Have the agent write a notecard and read the row back.

    Raises:
        CheckFailed: says what was expected and what was found instead.
        HanSoloError: a part did not answer.
    """
    nonce = secrets.token_hex(6)
    text = f"han-solo check {nonce}"
    settings = connections.settings
    spec = load_spec(settings.agent_spec, person=settings.person, model=connections.model)
    arguments = json.dumps({"text": text, "creator": spec.name})
    message = (
        f"Call the tool {TOOL} with {arguments} exactly once, then answer with one short sentence."
    )
    async with (
        LettaGateway.connect(
            connections.letta_url,
            connections.letta_password,
            timeout_s=settings.letta_timeout_s,
            message_timeout_s=settings.letta_message_timeout_s,
        ) as gateway,
        _open_database(connections) as database,
    ):
        agent = await gateway.fetch_agent(agent_id)
        if TOOL not in {tool.name for tool in agent.tools}:
            raise CheckFailed(
                f"The tool {TOOL} is not attached to the agent {agent.name}.",
                hint="See why with `han-solo sync-tools --dry-run`.",
            )
        blocks = Blocks(
            gateway,
            BlockVersions(database),
            agent_id,
            CARETAKER,
            rights=Rights.of(spec.blocks),
            timeout_s=settings.letta_timeout_s,
        )
        turns = build_turns(
            settings, db=database, gateway=gateway, agent_id=agent_id, blocks=blocks
        )
        try:
            turn = (await turns.send(message, sender=SENDER)).turn
        except SilentTurn as silent:
            raise CheckFailed(silent.message, hint=silent.hint) from silent
        returned = _returned(turn)
        row = await _read_row(database, text)
        # Proof is not a memory: the card is put away once it was seen.
        await Notecards(database).archive(CHECKER, int(row["id"]))
    return Evidence(
        agent_id=agent_id,
        model=str(agent.llm_config.get("handle") or agent.llm_config.get("model")),
        tools_attached=len(agent.tools),
        stop_reason=turn.stop_reason,
        said=turn.assistant_text or "nothing",
        returned=returned,
        row=row,
    )


def _returned(turn: Turn) -> str:
    """Return what our tool returned in the turn."""
    for tool_return in turn.tool_returns:
        if tool_return.name == TOOL:
            if tool_return.status != "success":
                raise CheckFailed(
                    f"The tool {TOOL} failed: {tool_return.text}",
                    hint="The bridge's log says more: logs/bridge.log in the home directory.",
                )
            return tool_return.text
    raise CheckFailed(
        f"The agent did not call {TOOL}; it said {turn.assistant_text or 'nothing'!r} "
        f"(stop reason {turn.stop_reason}).",
        hint="See that its model can call tools: `han-solo doctor`.",
    )


@asynccontextmanager
async def _open_database(connections: Connections) -> AsyncIterator[Database]:
    database = await Database.connect(
        connections.database_url,
        direct_url=connections.database_direct_url,
        pooler=connections.settings.database_pooler,
        pool_size=2,
    )
    try:
        yield database
    finally:
        await database.close()


async def _read_row(database: Database, text: str) -> dict[str, str]:
    async with database.connection() as connection:
        rows = await connection.fetch(_FIND, text)
    if len(rows) != 1:
        raise CheckFailed(
            f"Postgres holds {len(rows)} rows of the notecard that the tool reported written.",
            hint="See that the bridge and this command use one database: `han-solo status`.",
        )
    return {key: str(value) for key, value in rows[0].items()}
