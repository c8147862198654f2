"""Which embedder the settings ask for, and how one that the database names is made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..errors import SettingsError
from ..settings import Settings
from .local import LocalEmbedder
from .local_models import LOCAL_MODELS, POTION, choose_local
from .model import MAX_WIDTH, Embedder, EmbedderName, Provider
from .remote import Endpoint, RemoteEmbedder

_DEFAULTS: Final[dict[Provider, tuple[str, int]]] = {
    "local": (POTION.name, POTION.width),
    "voyage": ("voyage-3", 1_024),
    "openai": ("text-embedding-3-small", 1_536),
}
_URLS: Final[dict[Provider, str]] = {
    "voyage": "https://api.voyageai.com/v1",
    "openai": "https://api.openai.com/v1",
}
_KNOWN_WIDTHS: Final = {
    ("voyage", "voyage-3-lite"): 512,
    ("voyage", "voyage-code-2"): 1_536,
    ("voyage", "voyage-law-2"): 1_024,
    ("openai", "text-embedding-3-large"): 3_072,
    ("openai", "text-embedding-ada-002"): 1_536,
}
"""Of models that do not have their provider's usual width."""


def wanted_embedder(
    settings: Settings,
    provider: Provider | None = None,
    model: str | None = None,
    width: int | None = None,
) -> EmbedderName:
    """Return the embedder that the settings ask for, or the one given.

    Raises:
        SettingsError: there is no such combination.
    """
    chosen: Provider = provider or settings.embed_provider
    usual_model, usual_width = _DEFAULTS[chosen]
    if chosen == "local":
        usual_model = choose_local(_cache(settings)).name
    named = model or (settings.embed_model if chosen == settings.embed_provider else None)
    asked = (
        width
        if width is not None
        else (settings.embed_width if chosen == settings.embed_provider else None)
    )
    found = EmbedderName(
        chosen,
        named or usual_model,
        _KNOWN_WIDTHS.get((chosen, named or usual_model), usual_width) if asked is None else asked,
    )
    local = LOCAL_MODELS.get(found.model)
    if chosen == "local" and (local is None or local.width != found.width):
        names = " or ".join(f"{model.name} ({model.width})" for model in LOCAL_MODELS.values())
        raise SettingsError(
            f"The local embedder is {names}, and no other.",
            hint="Take HAN_SOLO_EMBED_MODEL and HAN_SOLO_EMBED_WIDTH out, or choose voyage or "
            "openai.",
        )
    if not 1 <= found.width <= MAX_WIDTH:
        raise SettingsError(
            f"Vectors of {found.width:,} numbers can not be indexed.",
            hint=f"Ask the model for at most {MAX_WIDTH:,} (HAN_SOLO_EMBED_WIDTH).",
        )
    return found


def make_embedder(settings: Settings, name: EmbedderName) -> Embedder:
    """Make the embedder of that name; keys and addresses come from the settings.

    Raises:
        SettingsError: its key is not set.
    """
    if name.provider == "local":
        return LocalEmbedder(_cache(settings), LOCAL_MODELS.get(name.model, POTION))
    keys = {"voyage": settings.voyage_api_key, "openai": settings.openai_api_key}
    key = keys[name.provider]
    url = (settings.embed_url or _URLS[name.provider]).rstrip("/")
    if key is None and settings.embed_url is None:
        raise SettingsError(
            f"The embedder {name} needs a key, and none is set.",
            hint=f"Set {name.provider.upper()}_API_KEY, or go back to the local one: han-solo "
            "embed switch local.",
        )
    return RemoteEmbedder(
        name,
        Endpoint(
            f"{url}/embeddings",
            key.get_secret_value() if key else "none",
            kinds={"passage": "document", "query": "query"} if name.provider == "voyage" else None,
            width_field="dimensions" if _takes_width(name) else None,
        ),
        timeout_s=settings.embed_timeout_s,
    )


def _takes_width(name: EmbedderName) -> bool:
    return name.provider == "openai" and name.model.startswith("text-embedding-3")


def _cache(settings: Settings) -> Path:
    return settings.cache.expanduser().absolute()
