"""The server is another one than was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.integration.guard_fixtures import GuardWorld


class OtherVersion:
    """Letta, as it would say that it is another version; all else goes to the real one."""

    def __init__(self, letta: Any, version: str) -> None:
        self._letta = letta
        self._version = version

    def __getattr__(self, name: str) -> Any:
        return getattr(self._letta, name)

    async def health(self) -> Any:
        return dataclasses.replace(await self._letta.health(), version=self._version)


async def replay(world: GuardWorld) -> None:
    assert await world.check("server_version") == (), "the real server is the tested one"
    real = world.services.letta
    seen = {}
    for version in ("0.16.7", "0.17.0", "0.16.8"):
        world.services = dataclasses.replace(world.services, letta=OtherVersion(real, version))  # type: ignore[arg-type]
        report = await world.run("server_version")
        seen[version] = [row.severity for row in report.findings]

    assert seen == {"0.16.7": ["critical"], "0.17.0": ["warning"], "0.16.8": []}
