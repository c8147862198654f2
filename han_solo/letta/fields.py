"""Fields of Letta's JSON: what is needed and missing is an error that names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar, cast

from han_solo.errors import LettaRefused

Json = Mapping[str, object]

T = TypeVar("T")

_HINT: Final = "Only Letta 0.16.8 is supported: run han-solo doctor."


def as_object(source: object, what: str) -> Json:
    """Return the JSON object.

    Raises:
        LettaRefused: when it is something else.
    """
    if isinstance(source, Mapping):
        return cast("Json", source)
    raise LettaRefused(
        f"Letta's answer has a {type(source).__name__} where the {what} should be.",
        hint=_HINT,
    )


def as_list(source: object, what: str) -> Sequence[object]:
    """Return the JSON list.

    Raises:
        LettaRefused: when it is something else.
    """
    if isinstance(source, list):
        return source
    raise LettaRefused(
        f"Letta's answer has a {type(source).__name__} where the list of {what} should be.",
        hint=_HINT,
    )


def need(body: Json, name: str, what: str) -> object:
    """Return a field that the answer must have."""
    value = body.get(name)
    if value is None:
        raise LettaRefused(
            f"Letta's {what} {body.get('id', '')!s} has no {name!r}.".replace("  ", " "),
            hint=_HINT,
        )
    return value


def need_str(body: Json, name: str, what: str) -> str:
    return _of_type(body, name, what, str)


def need_int(body: Json, name: str, what: str) -> int:
    return _of_type(body, name, what, int)


def need_list(body: Json, name: str, what: str) -> Sequence[object]:
    value: list[object] = _of_type(body, name, what, list)
    return value


def _of_type(body: Json, name: str, what: str, expected: type[T]) -> T:
    value = need(body, name, what)
    if not isinstance(value, expected):
        raise LettaRefused(
            f"Letta's {what} has a {type(value).__name__} as {name!r}.",
            hint=_HINT,
        )
    return value


def opt_str(body: Json, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) and value else None


def opt_object(source: object) -> Json:
    return cast("Json", source) if isinstance(source, Mapping) else {}


def opt_list(source: object) -> Sequence[object]:
    return source if isinstance(source, list) else ()


def strings(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def moment(value: object) -> datetime | None:
    """Read a time; Letta writes some in UTC without saying so."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
