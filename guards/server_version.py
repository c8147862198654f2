"""The guard that tells when Letta is another one than was measured."""

from __future__ import annotations

from typing import Final

from han_solo import CheckContext, Finding, guard

TESTED: Final = (0, 16, 8)
"""The last release of the server, and the one that every behaviour here was measured on."""


@guard(every_s=3600, incident="server-version")
async def server_version(context: CheckContext) -> tuple[Finding, ...]:
    """Find a Letta server of another version than the tested one.

    Before 0.16.8 tools' results crossed into the server as pickles, which can run code there.
    """
    version = (await context.letta.health()).version
    found = _parse(version)
    if found == TESTED:
        return ()
    tested = ".".join(map(str, TESTED))
    is_older = found is not None and found < TESTED
    return (
        Finding(
            key="version",
            summary=f"Letta is {version}; han-solo was tested with {tested}."
            + (" Its tool sandbox still takes pickles, which can run code." if is_older else ""),
            hint=f"Run Letta {tested}; what is known about its traps may not hold for {version}.",
            severity="critical" if is_older else "warning",
            detail={"found": version, "tested": tested},
        ),
    )


def _parse(version: str) -> tuple[int, ...] | None:
    parts = version.split("+", maxsplit=1)[0].split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None
