"""One tree of errors, with what to do next.

::

    HanSoloError                    a sentence, a hint, an exit code, retryable or not
    ├── UsageError                  something the user wrote is wrong
    │   ├── SettingsError
    │   ├── SpecError               the agent spec; carries path, line and column
    │   ├── DeclarationError        a @tool, @guard or @job, or the file it stands in
    │   └── BlockRefused            a core block can not be read or written so; carries reason
    ├── AuthError                   the caller of the bridge
    │   ├── Unauthenticated         no token, or not one of ours
    │   └── Forbidden               a token of too small a scope
    ├── StoreError                  Postgres
    │   ├── DatabaseUnavailable     retryable
    │   │   └── DatabaseRefused     wrong password, no such database: not retryable
    │   ├── ReconcileBusy           another process holds the agent's reconcile lock; retryable
    │   ├── SchemaNewer             the database was migrated by a newer han-solo
    │   ├── MigrationChanged        a merged migration was edited
    │   └── NotFound                no row of that id
    ├── LettaError                  the Letta server
    │   ├── LettaUnavailable        no answer, a 5xx or a timeout; retryable, state unknown
    │   │   ├── LettaUnreachable    no connection, so nothing was sent
    │   │   │   └── LeadLost        another process may lead by now, so nothing was sent
    │   │   └── TurnUnknown         a turn without an answer that may still run; never sent again
    │   ├── ModelFailed             the model behind Letta failed, not Letta
    │   ├── SilentTurn              a turn with no word for the user; han_solo.turns.silence
    │   ├── LettaUnauthorized       401 or 403
    │   ├── LettaNotFound           404
    │   │   └── AgentGone           a confirmed 404 of the agent: everything that writes stops
    │   ├── LettaConflict           409
    │   │   └── ApprovalPending     the agent takes no message before a tool call is approved
    │   └── LettaRefused            any other 4xx
    │       └── BridgeUrlRefused    Letta accepts no MCP server on a private address
    ├── EmbeddingFailed             no vector was made; carries is_passing
    │   └── WeightsMissing          the local embedder was not fetched
    ├── AgentBusy                   another turn has the agent; retryable, nothing was sent
    ├── BlockBusy                   other writers hold the core block; retryable, nothing was sent
    ├── WriteNotVerified            a write whose read-back differs
    ├── WriteUnsettled              a block write of which it is not known yet whether it landed
    ├── PlanRefused                 a brake of the reconciler; carries reason
    ├── SwitchFailed                a new model was tried, and the old one is back; carries reason
    │   └── SwitchUnsettled         the same, and the next start is to put the old one back
    ├── AlertFailed                 an alert did not go out; it is tried again
    ├── BridgeError                 the bridge itself
    ├── TimerError                  launchd or systemd is not here, or did not do what was asked
    └── EmbeddedError               a part that `up` starts

Foreign errors are wrapped where they enter (``raise ... from``); bugs pass through unwrapped.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from uuid import UUID


class HanSoloError(Exception):
    """An error with one clear sentence, and a hint that says what to do next."""

    exit_code = 2
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class UsageError(HanSoloError):
    """What the user wrote can not be used."""


class NameTaken(UsageError):
    """What is to be made bears a name that another has, perhaps since a moment ago."""


class SettingsError(UsageError):
    """A setting is missing or has a value out of its range."""


class SpecError(UsageError):
    """The agent spec can not be used; says where."""

    def __init__(
        self,
        message: str,
        *,
        path: Path,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = str(path)
        if line is not None:
            place += f":{line}"
            if column is not None:
                place += f":{column}"
        super().__init__(f"{place}: {message}", hint=hint)
        self.path = path
        self.line = line
        self.column = column


class DeclarationError(UsageError):
    """A declaration, or the file it stands in, can not be used; the process must not start."""


class BlockRefused(UsageError):
    """A core block can not be read or written so.

    ``reason`` is a stable name: ``unknown_label``, ``unknown_version``, ``not_a_writer``,
    ``over_limit``, ``read_only``, ``builtin_memory_tools``, ``version_conflict`` or
    ``not_exactly_once``.
    """

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class CallbackRefused(UsageError):
    """A tool that an agent waits for tried to message an agent. Nothing was sent."""


class AuthError(HanSoloError):
    """A caller of the bridge is refused."""


class Unauthenticated(AuthError):
    """No token, or one that is unknown, revoked or expired."""


class Forbidden(AuthError):
    """A good token whose scopes do not reach."""


class StoreError(HanSoloError):
    """Postgres, or what it holds."""


class TokenChanged(StoreError):
    """Somebody else rotated or revoked the token at the same moment; nothing was changed."""


class DatabaseUnavailable(StoreError):
    """Postgres does not answer. Nothing was written, unless the error says otherwise."""

    retryable = True


class DatabaseRefused(DatabaseUnavailable):
    """Postgres answers, and refuses us; it will do so again until someone mends it."""

    retryable = False


class ReconcileBusy(StoreError):
    """Another process has held the agent's reconcile lock for too long. Nothing was done."""

    retryable = True


class SchemaNewer(StoreError):
    """The database was migrated by a newer han-solo than this one."""


class MigrationChanged(StoreError):
    """A migration that was already applied differs from the one in this release."""


class NotFound(StoreError):
    """No row of that id."""


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


class WriteNotVerified(HanSoloError):
    """What was read back is not what was written."""

    def __init__(
        self, message: str, *, expected_sha256: str, found_sha256: str, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.expected_sha256 = expected_sha256
        self.found_sha256 = found_sha256


class WriteUnsettled(HanSoloError):
    """Whether a block write landed is not known. Its intent is kept: the next access settles it."""


class BlockBusy(HanSoloError):
    """Other writers held the core block all the time. Nothing was written."""

    retryable = True


class PlanRefused(HanSoloError):
    """A brake held the plan back; ``reason`` is its stable name, such as ``bridge_cold``."""

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class SwitchFailed(HanSoloError):
    """A model switch did not go through, and the agent is as it was before.

    ``reason`` is a stable name: ``canary_silent``, ``canary_failed``, ``not_verified`` or
    ``failed``.
    """

    exit_code = 1

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class SwitchUnsettled(SwitchFailed):
    """The same, but the agent could not be brought back: the next start does it, by the journal."""

    exit_code = 2


class AlertFailed(HanSoloError):
    """An alert did not go out everywhere."""

    retryable = True


class BridgeError(HanSoloError):
    """The bridge can not start or does not answer."""

    retryable = True


class EmbeddingFailed(HanSoloError):
    """An embedder made no vector. ``is_passing``: it may well do so later, unchanged."""

    def __init__(self, message: str, *, hint: str | None = None, is_passing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_passing = is_passing


class WrongWidth(EmbeddingFailed):
    """A model returned vectors of another width than those that are kept; ``width`` is theirs."""

    def __init__(self, message: str, *, width: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.width = width


class WeightsMissing(EmbeddingFailed):
    """The weights of the local embedder are not there, or are not those that are expected."""


class TimerError(HanSoloError):
    """launchd or systemd is not here, or did not do what it was asked to."""


class EmbeddedError(HanSoloError):
    """A part that ``up`` starts did not come up."""
