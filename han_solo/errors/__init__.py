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
    │   ├── WrongWidth              a model returned vectors of another width
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

from .base import (
    AuthError,
    DeclarationError,
    Forbidden,
    HanSoloError,
    NameTaken,
    SettingsError,
    SpecError,
    Unauthenticated,
    UsageError,
)
from .doing import (
    AlertFailed,
    BlockBusy,
    BlockRefused,
    BridgeError,
    CallbackRefused,
    EmbeddedError,
    EmbeddingFailed,
    PlanRefused,
    SwitchFailed,
    SwitchUnsettled,
    TimerError,
    WeightsMissing,
    WriteNotVerified,
    WriteUnsettled,
    WrongWidth,
)
from .letta import (
    AgentBusy,
    AgentGone,
    ApprovalPending,
    BridgeUrlRefused,
    LeadLost,
    LettaConflict,
    LettaError,
    LettaNotFound,
    LettaRefused,
    LettaUnauthorized,
    LettaUnavailable,
    LettaUnreachable,
    ModelFailed,
    TurnUnknown,
)
from .store import (
    DatabaseRefused,
    DatabaseUnavailable,
    MigrationChanged,
    NotFound,
    ReconcileBusy,
    SchemaNewer,
    StoreError,
    TokenChanged,
)

__all__ = [
    "AgentBusy",
    "AgentGone",
    "AlertFailed",
    "ApprovalPending",
    "AuthError",
    "BlockBusy",
    "BlockRefused",
    "BridgeError",
    "BridgeUrlRefused",
    "CallbackRefused",
    "DatabaseRefused",
    "DatabaseUnavailable",
    "DeclarationError",
    "EmbeddedError",
    "EmbeddingFailed",
    "Forbidden",
    "HanSoloError",
    "LeadLost",
    "LettaConflict",
    "LettaError",
    "LettaNotFound",
    "LettaRefused",
    "LettaUnauthorized",
    "LettaUnavailable",
    "LettaUnreachable",
    "MigrationChanged",
    "ModelFailed",
    "NameTaken",
    "NotFound",
    "PlanRefused",
    "ReconcileBusy",
    "SchemaNewer",
    "SettingsError",
    "SpecError",
    "StoreError",
    "SwitchFailed",
    "SwitchUnsettled",
    "TimerError",
    "TokenChanged",
    "TurnUnknown",
    "Unauthenticated",
    "UsageError",
    "WeightsMissing",
    "WriteNotVerified",
    "WriteUnsettled",
    "WrongWidth",
]
