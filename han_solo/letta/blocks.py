"""The gateway's part for core blocks: single, unverified calls.

``han_solo.blocks`` is what writes a block's value and verifies it; nothing deletes or detaches one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from . import text, views
from .agents import AgentCalls


class BlockCalls(AgentCalls):
    """Reads, creates, changes and attaches blocks."""

    async def fetch_block(self, block_id: str) -> views.BlockView:
        body = await self._link.read(
            f"reading the block {block_id}",
            lambda letta: letta.blocks.with_raw_response.retrieve(block_id),
        )
        return views.parse_block(body)

    async def create_block(
        self,
        label: str,
        value: str,
        *,
        limit: int,
        description: str = "",
        read_only: bool = False,
    ) -> views.BlockView:
        """Create a block, attached to nothing yet. Not tried again: Letta makes a second one."""
        text.require_storable(value, f"The block {label!r}")
        body = {
            "label": label,
            "value": value,
            "limit": limit,
            "description": description,
            "read_only": read_only,
        }
        return views.parse_block(
            await self._post(f"creating the block {label!r}", "/v1/blocks/", body)
        )

    async def write_block(self, block_id: str, value: str) -> views.BlockView:
        """Replace a block's value, once, unverified; ``Blocks.write`` is the one that verifies.

        Raises:
            LettaConflict: when another write of the block ran at the same time.
            UsageError: a character that Letta can not store.
        """
        text.require_storable(value, f"The value for the block {block_id}")
        return await self._patch_block(block_id, {"value": value})

    async def patch_block(
        self,
        block_id: str,
        *,
        limit: int | None = None,
        description: str | None = None,
        read_only: bool | None = None,
    ) -> views.BlockView:
        """Change what a block is, never its value; read back."""
        wanted = {"limit": limit, "description": description, "read_only": read_only}
        await self._patch_block(
            block_id, {key: value for key, value in wanted.items() if value is not None}
        )
        return await self.fetch_block(block_id)

    async def _patch_block(self, block_id: str, body: Mapping[str, object]) -> views.BlockView:
        return views.parse_block(
            await self._patch(
                f"changing the block {block_id}", f"/v1/blocks/{quote(block_id, safe='')}", body
            )
        )

    async def attach_block(self, agent_id: str, block_id: str) -> None:
        """Attach a block. Not read back: ``fetch_agent`` shows all.

        Raises:
            LettaConflict: when the agent has a block of that label.
        """
        doing = f"attaching the block {block_id} to the agent {agent_id}"
        await self._of_agent(
            agent_id,
            self._link.write(
                doing,
                lambda letta: letta.agents.blocks.with_raw_response.attach(
                    block_id, agent_id=agent_id
                ),
            ),
        )
