"""What every part of the gateway stands on: the link, and a POST and a PATCH of a plain body.

The parts (``server``, ``agents``, ``tools``, ``blocks``, ``messages`` and others) are put together
in ``gateway``, which is the class that others use. There is no way to send a DELETE from here.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from .link import Link


class Calls:
    """Sends through one link; a write is sent once."""

    def __init__(self, link: Link) -> None:
        self._link = link

    @property
    def base_url(self) -> str:
        return self._link.base_url

    async def _post(
        self,
        doing: str,
        path: str,
        body: Mapping[str, object],
        *,
        params: Mapping[str, object] | None = None,
    ) -> object:
        return await self._link.write(
            doing,
            lambda letta: letta.post(
                path, cast_to=httpx.Response, body=body, options={"params": params or {}}
            ),
        )

    async def _patch(self, doing: str, path: str, body: Mapping[str, object]) -> object:
        return await self._link.write(
            doing, lambda letta: letta.patch(path, cast_to=httpx.Response, body=body)
        )
