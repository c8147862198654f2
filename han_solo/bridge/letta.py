"""The bridge's two ways to Letta."""

from __future__ import annotations

from dataclasses import dataclass

from ..connections import Connections
from ..letta.gateway import LettaGateway


@dataclass(frozen=True, slots=True)
class Letta:
    """The two ways to Letta: one for syncs and operators, one for blocks.

    Each has connections of its own, so that a slow sync can not hold up a block write, for which
    the agent waits.
    """

    gateway: LettaGateway
    blocks: LettaGateway

    @classmethod
    def connect(cls, connections: Connections) -> Letta:
        """Make both; nothing is sent yet."""
        settings = connections.settings
        url, password = connections.letta_url, connections.letta_password
        return cls(
            gateway=LettaGateway.connect(
                url,
                password,
                timeout_s=settings.letta_timeout_s,
                message_timeout_s=settings.letta_message_timeout_s,
            ),
            blocks=LettaGateway.connect(url, password, timeout_s=settings.letta_block_timeout_s),
        )

    async def close(self) -> None:
        await self.gateway.close()
        await self.blocks.close()
