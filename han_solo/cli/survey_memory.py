"""What the survey says of the memory: its passages, and the model that they are searched by."""

from __future__ import annotations

from ..connections import Connections
from ..errors import EmbeddingFailed, HanSoloError, SettingsError
from ..memory.opening import open_passages
from ..store.database import Database
from .survey_model import Survey


async def look_at_memory(
    connections: Connections, found: Survey, database: Database | None
) -> None:
    """Look whether what is remembered is found by its meaning too. Nothing is embedded."""
    if database is None:
        found.add("memory", "unknown", "", "can be looked at once the database is there")
        return
    try:
        vectors = open_passages(connections.settings, database).vectors
        try:
            state, models = await vectors.state(), await vectors.list_models()
            if models:
                await vectors.active()
        finally:
            await vectors.close()
    except (EmbeddingFailed, SettingsError) as error:
        found.add(
            "memory", "warning", "",
            f"passages are searched by their words alone: {error.message}", error.hint,
        )  # fmt: skip
        return
    except HanSoloError as error:
        found.add_fault("memory", "", error)
        return
    if not models:
        found.add("memory", "ok", "", "nothing is remembered yet")
        return
    chunks = f"{state.chunks:,} chunk{'' if state.chunks == 1 else 's'} of passages"
    if state.stale:
        found.add(
            "memory", "warning", str(state.name),
            f"{state.stale:,} of {chunks} are found by their words alone",
            "Run `han-solo embed fill`, which makes their vectors.",
        )  # fmt: skip
        return
    found.add("memory", "ok", str(state.name), f"{chunks}, found by words and by meaning")
