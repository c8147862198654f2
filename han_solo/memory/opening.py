"""Passages with the embedder of the settings, for the bridge, commands and jobs."""

from __future__ import annotations

from functools import partial

from ..clock import Clock
from ..embed.choice import make_embedder, wanted_embedder
from ..settings import Settings
from ..store.database import Database
from .passages import Passages
from .vectors import Vectors


def open_passages(settings: Settings, db: Database, clock: Clock | None = None) -> Passages:
    """Bind the passages of a database; ``passages.vectors.close()`` ends what it opened.

    Raises:
        SettingsError: there is no such embedder as the settings name.
    """
    vectors = Vectors(db, wanted_embedder(settings), partial(make_embedder, settings), clock)
    return Passages(db, vectors, clock)
