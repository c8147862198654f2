"""The gateway's part for providers of models that were added with a key of one's own.

Letta calls them BYOK. Its answers carry the key itself, in ``api_key_enc``, in the clear unless it
was given an encryption key: so nothing is read from them but whether there is one. Providers whose
key stands in Letta's environment are not listed at all; their models are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

import httpx

from . import fields
from .server import ServerCalls

MAX_PROVIDERS: Final = 1_000
"""Letta's default page is 50; nobody has a thousand providers."""


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A provider that somebody added; its key is not kept, only whether there is one.

    ``synced_at`` is when Letta last listed its models; None means it never could, which is what a
    wrong key or address looks like.
    """

    id: str
    name: str
    provider_type: str
    base_url: str | None
    has_key: bool
    synced_at: datetime | None


class ProviderCalls(ServerCalls):
    """Lists, checks and adds providers; none is ever taken away."""

    async def fetch_providers(self) -> tuple[ProviderView, ...]:
        """Fetch the providers that somebody added, by name."""
        body = await self._link.read(
            "listing the providers",
            lambda letta: letta.get(
                "/v1/providers/",
                cast_to=httpx.Response,
                options={"params": {"limit": MAX_PROVIDERS}},
            ),
        )
        found = map(parse_provider, fields.as_list(body, "providers"))
        return tuple(sorted(found, key=lambda provider: provider.name))

    async def check_key(self, provider_type: str, key: str, base_url: str | None) -> None:
        """Have Letta ask a provider whether it takes a key; nothing is stored.

        Raises:
            ModelFailed: the provider refuses the key, or can not be reached.
            LettaRefused: Letta knows no such type, or needs more to ask it.
        """
        await self._link.write(
            f"asking {provider_type} whether it takes the key",
            lambda letta: letta.post(
                "/v1/providers/check",
                cast_to=httpx.Response,
                body=_build_body(provider_type, key, base_url),
            ),
            secrets=(key,),
        )

    async def check_provider(self, provider_id: str) -> None:
        """Have Letta ask a provider whether it takes the key that is stored for it.

        Raises:
            ModelFailed: the provider refuses the key, or can not be reached.
        """
        path = f"/v1/providers/{quote(provider_id, safe='')}/check"
        await self._post("asking the provider whether it takes its key", path, {})

    async def add_provider(
        self, name: str, provider_type: str, key: str, base_url: str | None
    ) -> ProviderView:
        """Add a provider; Letta lists its models at once, if it can.

        Raises:
            LettaConflict: there is one of that name.
            LettaRefused: the name is that of a provider in Letta's environment.
        """
        body = {"name": name, **_build_body(provider_type, key, base_url)}
        answer = await self._link.write(
            f"adding the provider {name!r}",
            lambda letta: letta.post("/v1/providers/", cast_to=httpx.Response, body=body),
            secrets=(key,),
        )
        return parse_provider(answer)

    async def replace_key(self, provider_id: str, key: str) -> ProviderView:
        """Give a provider another key; its name, address and models stay."""
        answer = await self._link.write(
            "replacing the provider's key",
            lambda letta: letta.patch(
                f"/v1/providers/{quote(provider_id, safe='')}",
                cast_to=httpx.Response,
                body={"api_key": key},
            ),
            secrets=(key,),
        )
        return parse_provider(answer)


def parse_provider(source: object) -> ProviderView:
    body = fields.as_object(source, "provider")
    synced = fields.opt_str(body, "last_synced")
    return ProviderView(
        id=fields.need_str(body, "id", "provider"),
        name=fields.need_str(body, "name", "provider"),
        provider_type=fields.need_str(body, "provider_type", "provider"),
        base_url=fields.opt_str(body, "base_url"),
        has_key=bool(body.get("api_key_enc") or body.get("api_key")),
        synced_at=datetime.fromisoformat(synced) if synced else None,
    )


def _build_body(provider_type: str, key: str, base_url: str | None) -> Mapping[str, str]:
    body = {"provider_type": provider_type, "api_key": key}
    return body if base_url is None else {**body, "base_url": base_url}
