"""What every error is, and those of somebody who asks for what can not be."""

from __future__ import annotations

from pathlib import Path


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


class AuthError(HanSoloError):
    """A caller of the bridge is refused."""


class Unauthenticated(AuthError):
    """No token, or one that is unknown, revoked or expired."""


class Forbidden(AuthError):
    """A good token whose scopes do not reach."""
