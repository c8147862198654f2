"""Errors of Letta, and of the agent's turns."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from .base import HanSoloError


class LettaError(HanSoloError):
    """The Letta server, by what its answer means to us."""

    def __init__(
        self, message: str, *, hint: str | None = None, status_code: int | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status_code = status_code


class LettaUnavailable(LettaError):
    """No answer, a 5xx or a timeout: the state of the world is unknown, never "gone"."""

    retryable = True


class LettaUnreachable(LettaUnavailable):
    """No connection could be made: nothing was sent, so it can be tried again."""


class LeadLost(LettaUnreachable):
    """This process leads no more, or may not: nothing was sent, and whoever leads does it."""

    retryable = False

    def __init__(self) -> None:
        super().__init__(
            "This process has lost the lead, so nothing was sent to Letta.",
            hint="Whoever leads now looks and repairs; see `han-solo guards history`.",
        )


class TurnUnknown(LettaUnavailable):
    """A turn was begun and no answer came; it may still run, so it must not be sent again."""

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        agent_id: str,
        turn_id: UUID,
        run_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.agent_id = agent_id
        self.turn_id = turn_id
        self.run_id = run_id


class ModelFailed(LettaError):
    """The model behind Letta failed, or Letta could not use what it wrote."""


class LettaUnauthorized(LettaError):
    """401 or 403: the password is wrong."""


class LettaNotFound(LettaError):
    """404."""


class AgentGone(LettaNotFound):
    """A confirmed 404 of the agent. Everything that writes must stop."""


class LettaConflict(LettaError):
    """409."""


class ApprovalPending(LettaConflict):
    """The agent waits for a tool call to be approved or denied, and took no message."""


class LettaRefused(LettaError):
    """Any other 4xx: the request itself was at fault."""


class BridgeUrlRefused(LettaRefused):
    """Letta accepts no MCP server on a private address, and lists none while one is stored."""


class AgentBusy(HanSoloError):
    """Another turn has the agent, or the floor was lost before the message was sent."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        agent_id: str,
        holder: str | None = None,
        since: datetime | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.agent_id = agent_id
        self.holder = holder
        self.since = since
