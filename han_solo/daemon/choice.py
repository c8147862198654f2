"""Which guards run, how often and in which mode: what they declare, and what the settings say.

Who calls: the daemon at its start, and the commands of ``han-solo guards``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..declare import GuardSpec
from ..errors import SettingsError
from ..settings import Settings
from .report import Mode


@dataclass(frozen=True, slots=True)
class Choice:
    """One guard as it is to run. ``is_set`` says that the mode is the settings'."""

    spec: GuardSpec
    mode: Mode
    every_s: float
    is_set: bool

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def runs(self) -> bool:
        return self.mode != "off"


def choose(guards: Iterable[GuardSpec], settings: Settings) -> tuple[Choice, ...]:
    """Return how each guard is to run, by name.

    Raises:
        SettingsError: a setting names a guard that there is none of, or has one repair that can
            not.
    """
    by_name = {spec.name: spec for spec in guards}
    _refuse_unknown("HAN_SOLO_GUARD_MODES", settings.guard_modes, by_name)
    _refuse_unknown("HAN_SOLO_GUARD_EVERY_S", settings.guard_every_s, by_name)
    for name, mode in settings.guard_modes.items():
        if mode == "repair" and by_name[name].remedy is None:
            raise SettingsError(
                f"HAN_SOLO_GUARD_MODES has {name} repair, and that guard has no remedy.",
                hint=f"Use {name}=observe; what to do about its findings is said in each.",
            )
    return tuple(
        Choice(
            spec=spec,
            mode=settings.guard_modes.get(name, spec.mode),
            every_s=settings.guard_every_s.get(name, spec.every_s),
            is_set=name in settings.guard_modes,
        )
        for name, spec in sorted(by_name.items())
    )


def modes_of(choices: Iterable[Choice]) -> Mapping[str, Mode]:
    """Return the modes as ``run_guards`` takes them."""
    return {choice.name: choice.mode for choice in choices}


def _refuse_unknown(variable: str, named: Iterable[str], by_name: Mapping[str, GuardSpec]) -> None:
    for name in named:
        if name not in by_name:
            raise SettingsError(
                f"{variable} names the guard {name!r}, and there is none.",
                hint=find_similar(name, sorted(by_name)),
            )


def find_similar(name: str, names: Sequence[str]) -> str:
    """Return a hint that names what may have been meant."""
    close = difflib.get_close_matches(name, names)
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return "`han-solo guards list` lists them."
