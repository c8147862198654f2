"""The gateway's part for canaries: throw-away agents that try a model before it is relied on.

Here is the only DELETE that this package can send, and it reaches nothing but a canary: an agent
is read first, and must bear our tag, our prefix in its name, and no block. An agent that somebody
works with has blocks, and the tag is put on none but a canary.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

import httpx

from han_solo.errors import AgentGone, LettaNotFound, LettaRefused

from . import paging, views
from .agents import INCLUDE, AgentCalls

CANARY_TAG: Final = "han-solo-canary"
CANARY_PREFIX: Final = "han-solo-canary-"

SYSTEM: Final = (
    "You are a test of a connection and nobody's assistant. Answer the user in one short sentence. "
    "Call no tool."
)


class CanaryCalls(AgentCalls):
    """Makes canaries, finds those that were left over, and ends them."""

    async def create_canary(
        self, owner_id: str, llm_config: Mapping[str, object], tool_ids: Sequence[str]
    ) -> views.AgentView:
        """Make an agent without blocks that has this model configuration and these tools.

        Args:
            owner_id: the agent for which the model is tried; the canary's second tag names it.
            llm_config: complete, as it is to be tried.
            tool_ids: what is attached to the agent.
        """
        made = await self.create_agent(
            name=f"{CANARY_PREFIX}{uuid.uuid4()}",
            model=str(llm_config.get("handle")),
            system=SYSTEM,
            tags=(CANARY_TAG, tag_of(owner_id)),
            tool_ids=tool_ids,
        )
        return await self.patch_llm_config(made.id, llm_config)

    async def find_canaries(self, owner_id: str) -> tuple[str, ...]:
        """Find the canaries of an agent, by their tag, and return their ids."""
        doing = f"looking for canaries of the agent {owner_id}"
        query: dict[str, object] = {"tags": [tag_of(owner_id)], "include": [*INCLUDE]}

        async def fetch_page(rows: int, after: str | None) -> object:
            params = query | {"limit": rows} | ({"after": after} if after else {})
            return await self._link.read(
                doing,
                lambda letta: letta.get(
                    "/v1/agents/", cast_to=httpx.Response, options={"params": params}
                ),
            )

        async def fetch_count() -> object:
            return await self._link.read(
                doing,
                lambda letta: letta.get(
                    "/v1/agents/count",
                    cast_to=httpx.Response,
                    options={"params": {"tags": [tag_of(owner_id)]}},
                ),
            )

        found = await paging.fetch_all("agent", fetch_page, fetch_count)
        return tuple(view.id for view in map(views.parse_agent, found) if _is_canary(view))

    async def end_canary(self, canary_id: str) -> None:
        """End a canary; one that is gone already is as well.

        Raises:
            LettaRefused: it is no canary; nothing was sent.
        """
        try:
            view = await self.fetch_agent(canary_id)
        except AgentGone:
            return
        if not _is_canary(view):
            raise LettaRefused(
                f"The agent {canary_id} ({view.name!r}) is no canary of ours, and only those are "
                "ever deleted.",
                hint="Nothing was done.",
            )
        try:
            await self._link.write(
                f"ending the canary {canary_id}",
                lambda letta: letta.delete(
                    f"/v1/agents/{quote(canary_id, safe='')}", cast_to=httpx.Response
                ),
            )
        except LettaNotFound:  # somebody else was quicker
            return


def tag_of(owner_id: str) -> str:
    """Return the tag of an agent's canaries."""
    return f"{CANARY_TAG}:{owner_id}"


def _is_canary(view: views.AgentView) -> bool:
    return CANARY_TAG in view.tags and view.name.startswith(CANARY_PREFIX) and not view.blocks
