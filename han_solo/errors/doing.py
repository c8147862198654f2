"""Errors of what han-solo does: blocks, plans, switches, vectors, timers, its own parts."""

from __future__ import annotations

from .base import HanSoloError, UsageError


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
