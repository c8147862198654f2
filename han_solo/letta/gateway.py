"""The Letta gateway: the only way to Letta, with its traps behind it.

Who calls: the reconciler, verified block writes, status and doctor; nobody else speaks to Letta.
Its calls stand by subject in ``server``, ``agents``, ``tools``, ``blocks``, ``archival``,
``messages``, ``providers`` and ``canaries``.

What is not there is left out on purpose: nothing deletes a tool, a block, an MCP server or an
agent (but the throw-away ones of ``canaries``), nothing asks Letta to refresh an MCP server (that
hard-deletes what the bridge does not list at that moment), and no method sends ``llm_config`` and
``tool_ids`` together: ``_patch_agent`` has room for one field. Only reads are tried again. Errors
are those of ``han_solo.errors``; an agent is said to be gone only after a second 404 from a server
that is healthy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from .archival import ArchivalCalls
from .blocks import BlockCalls
from .canaries import CanaryCalls
from .link import Link
from .messages import MessageCalls
from .providers import ProviderCalls
from .tools import ToolCalls

if TYPE_CHECKING:
    import httpx

    from han_solo.clock import Clock


class LettaGateway(ToolCalls, BlockCalls, ArchivalCalls, MessageCalls, CanaryCalls, ProviderCalls):
    """One Letta server. Safe to share by tasks of one event loop."""

    @classmethod
    def connect(
        cls,
        base_url: str,
        password: str | None,
        *,
        timeout_s: float = 30.0,
        message_timeout_s: float = 600.0,
        clock: Clock | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Self:
        """Make a gateway; nothing is sent before the first call.

        Args:
            base_url: the server's URL, without ``/v1``.
            password: the server's password, or None where it asks for none.
            timeout_s: seconds for one call that is not a message.
            message_timeout_s: seconds for one turn.
            clock: the clock that waits between tries.
            transport: replaces the network, in tests.

        Raises:
            SettingsError: when the URL is none, or has a password in it.
        """
        return cls(
            Link(
                base_url,
                password,
                timeout_s=timeout_s,
                message_timeout_s=message_timeout_s,
                clock=clock,
                transport=transport,
            )
        )

    async def close(self) -> None:
        await self._link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()
