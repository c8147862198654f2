"""The gateway's part for the server itself: its health and the models that it can use."""

from __future__ import annotations

from collections.abc import Mapping

from . import fields, views
from .calls import Calls


class ServerCalls(Calls):
    """Reads of the server; nothing here writes."""

    async def health(self) -> views.HealthView:
        """Ask whether the server is up; it answers without a password."""
        body = await self._link.read(
            "asking for its health", lambda letta: letta.with_raw_response.health()
        )
        return views.parse_health(body)

    async def fetch_models(self) -> tuple[views.ModelView, ...]:
        """Fetch the models that this server can use, by handle."""
        body = await self._link.read(
            "listing the models", lambda letta: letta.models.with_raw_response.list()
        )
        return tuple(views.parse_model(model) for model in fields.as_list(body, "models"))

    async def fetch_model_configs(self) -> tuple[Mapping[str, object], ...]:
        """Fetch Letta's own configuration of every model, under the names of ``llm_config``."""
        body = await self._link.read(
            "listing the models", lambda letta: letta.models.with_raw_response.list()
        )
        return tuple(fields.as_object(model, "model") for model in fields.as_list(body, "models"))

    async def fetch_model_config(self, handle: str) -> Mapping[str, object] | None:
        """Fetch Letta's own configuration of a model, under the names of ``llm_config``.

        Returns None when this server has no such model.
        """
        models = await self.fetch_model_configs()
        return next((model for model in models if model.get("handle") == handle), None)

    async def fetch_embedding_handles(self) -> tuple[str, ...]:
        """Fetch the handles of the embedding models that this server can use."""
        body = await self._link.read(
            "listing the embedding models",
            lambda letta: letta.models.embeddings.with_raw_response.list(),
        )
        return tuple(
            fields.need_str(fields.as_object(model, "embedding model"), "handle", "embedding model")
            for model in fields.as_list(body, "embedding models")
        )
