"""Which model the agent talks to: one whose key is set, or the rehearsal model.

Keys are read from the environment and from ``.env``; they go to the Letta that ``up`` starts and
nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dotenv import dotenv_values

from ..errors import SettingsError
from ..reconcile.spec import AgentSpec
from ..settings_loading import find_env_file

REHEARSAL_HANDLE: Final = "openai-proxy/rehearsal"
"""Letta calls a provider behind another base URL than OpenAI's own ``openai-proxy``."""

PROVIDER_OF_KEY: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "anthropic",
    "AZURE_API_KEY": "azure",
    "DEEPSEEK_API_KEY": "deepseek",
    "GEMINI_API_KEY": "google_ai",
    "GROQ_API_KEY": "groq",
    "OPENAI_API_KEY": "openai",
    "OPENROUTER_API_KEY": "openrouter",
    "TOGETHER_API_KEY": "together",
    "XAI_API_KEY": "xai",
}
"""The variables Letta 0.16.8 reads, and how it begins the handles of that provider's models."""

_COMPANIONS: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_BASE_URL", "AZURE_API_VERSION")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What Letta is given, and the handle that replaces the spec's (None: the spec's stands)."""

    handle: str | None
    environment: Mapping[str, str] = field(repr=False)

    @property
    def is_rehearsal(self) -> bool:
        return self.handle == REHEARSAL_HANDLE


def load_model_keys(dotenv: Path | None = None) -> dict[str, str]:
    """Return the model keys that are set, and what belongs to them; the environment wins."""
    known = {**dotenv_values(dotenv or find_env_file()), **os.environ}
    names = [name for name in PROVIDER_OF_KEY if known.get(name)]
    return {name: str(known[name]) for name in (*names, *_COMPANIONS) if names and known.get(name)}


def choose_model(
    spec: AgentSpec, keys: Mapping[str, str], *, last: str | None = None
) -> ModelChoice:
    """Choose the rehearsal model when no key is set or it is asked for, else the spec's model.

    An agent that had a real model is never given the rehearsal model because a key is missing: the
    stand-in's answers would become its memories.

    Args:
        spec: with ``HAN_SOLO_MODEL`` already put in place of its handle.
        keys: what ``load_model_keys`` found.
        last: the real model that the agent was last started with, if any.

    Raises:
        SettingsError: the key of the model's provider is missing.
    """
    providers = {PROVIDER_OF_KEY[name] for name in keys if name in PROVIDER_OF_KEY}
    if spec.model.handle == REHEARSAL_HANDLE or not (providers or last):
        return ModelChoice(REHEARSAL_HANDLE, {})
    if not providers:
        raise SettingsError(
            f"The agent runs {last}, and no model key is set at this start.",
            hint="Set it, in the environment or in .env; or, to rehearse with this agent all the "
            f"same, set HAN_SOLO_MODEL={REHEARSAL_HANDLE}.",
        )
    wanted = spec.model.handle.partition("/")[0]
    if "OPENAI_BASE_URL" in keys:
        providers.add("openai-proxy")
    if wanted not in providers:
        needed = next((name for name, of in PROVIDER_OF_KEY.items() if of == wanted), None)
        raise SettingsError(
            f"The agent's model is {spec.model.handle}, but of the model keys only "
            f"{', '.join(sorted(set(keys) & set(PROVIDER_OF_KEY)))} is set.",
            hint=(f"Set {needed}, or choose" if needed else "Choose")
            + " a model of yours with HAN_SOLO_MODEL=provider/name.",
        )
    return ModelChoice(None, dict(keys))
