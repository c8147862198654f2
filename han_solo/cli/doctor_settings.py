"""Variables with our prefix that nobody reads: ``doctor`` warns of them and names the nearest.

A misspelt setting would otherwise be no setting at all, without a word. It is never an error, since
what others run beside us may use the prefix too.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator
from typing import Final

import dotenv
from pydantic import AliasChoices

from ..settings import Settings
from ..settings_loading import find_env_file
from .survey_model import Part

PREFIX: Final = "HAN_SOLO_"

READ_ELSEWHERE: Final = frozenset(
    {
        "HAN_SOLO_PYTHON",  # scripts/_run: which Python
        "HAN_SOLO_VENV",  # scripts/_run: where the environment is
        "HAN_SOLO_PROGRAM",  # what the scripts call the command in its own words
        "HAN_SOLO_ALLOW_MCP_URLS",  # what the launcher of Letta is told
        "HAN_SOLO_TEST_CACHE",  # the tests'
    }
)

_LIKENESS: Final = 0.7
"""From here on a name is taken for a misspelt one: two letters swapped or dropped, a word more."""


def examine_variables() -> Iterator[Part]:
    """Look at the environment and at the file that is read beside it."""
    env_file = find_env_file()
    written = dotenv.dotenv_values(env_file) if env_file.is_file() else {}
    for where, names in (("the environment", os.environ), (str(env_file.absolute()), written)):
        for name in sorted(find_unread(names)):
            yield Part(
                "settings", "warning", where, f"{name} is set, and nothing reads it", _advise(name)
            )


def find_unread(names: Collection[str]) -> frozenset[str]:
    """Return those with our prefix that are no setting; upper and lower case are the same."""
    known = {*list_settings(), *READ_ELSEWHERE}
    return frozenset(
        name for name in names if name.upper().startswith(PREFIX) and name.upper() not in known
    )


def list_settings() -> frozenset[str]:
    """Return the variables that are settings."""
    names = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    for field in Settings.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            names |= {str(choice) for choice in field.validation_alias.choices}
    return frozenset(name for name in names if name.startswith(PREFIX))


def _advise(name: str) -> str:
    near = difflib.get_close_matches(name.upper(), sorted(list_settings()), 1, _LIKENESS)
    if near:
        return f"If it is meant for han-solo, it is spelt {near[0]}."
    return "If it is meant for han-solo: docs/reference/settings.md lists what there is."
