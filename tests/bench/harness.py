"""One harness for all benches: warm-up, interleaved repeats, medians, goals, one form of output.

A bench is a module ``tests/bench/bench_NAME.py`` with

- a docstring, whose first line says what is measured;
- ``GOALS``: ``{figure: Goal(max=...)}`` or ``Goal(min=...)``;
- ``async def measure(options) -> dict[str, float]``, the figures;
- optionally ``add_options(parser)`` for options of its own.

Figures whose goal is a ratio are measured in the same run, in turns, so that a slow machine or a
busy minute hits both sides alike.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on one figure; exactly one of the two is set."""

    max: float | None = None
    min: float | None = None

    def is_met(self, value: float) -> bool:
        """Say whether the figure keeps the bound."""
        if self.max is not None:
            return value <= self.max
        assert self.min is not None
        return value >= self.min

    def as_json(self) -> dict[str, float]:
        """Return ``{"max": number}`` or ``{"min": number}``."""
        return {"max": self.max} if self.max is not None else {"min": self.min or 0.0}


@dataclass(frozen=True, slots=True)
class Report:
    """What one bench found."""

    bench: str
    figures: Mapping[str, float]
    goals: Mapping[str, Goal]

    @property
    def met(self) -> bool:
        """Say whether every goal has its figure and every figure keeps its goal."""
        return all(
            name in self.figures and goal.is_met(self.figures[name])
            for name, goal in self.goals.items()
        )

    def as_json(self) -> dict[str, Any]:
        """Return the documented form."""
        return {
            "bench": self.bench,
            "machine": describe_machine(),
            "figures": {name: round(value, 4) for name, value in self.figures.items()},
            "goals": {name: goal.as_json() for name, goal in self.goals.items()},
            "met": self.met,
        }


def names() -> list[str]:
    """Return the names of all benches."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def load(name: str) -> ModuleType:
    """Import the module of a bench."""
    return importlib.import_module(f"{__package__}.bench_{name}")


def run(name: str, options: Any) -> Report:
    """Run one bench to its report."""
    module = load(name)
    figures = asyncio.run(module.measure(options))
    return Report(name, figures, module.GOALS)


async def compare_ms(
    candidates: Mapping[str, Callable[[], Awaitable[object]]], *, repeats: int, warmup: int = 3
) -> dict[str, float]:
    """Return the median milliseconds of each candidate, all run in turns.

    Args:
        candidates: what is run, by name.
        repeats: measured rounds; each runs every candidate once.
        warmup: rounds that are run first and not counted.
    """
    spent: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warmup + repeats):
        for name, candidate in candidates.items():
            began = time.perf_counter()
            await candidate()
            if turn >= warmup:
                spent[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values) for name, values in spent.items()}


def describe_machine() -> str:
    """Return processor, cores and Python, for reading figures beside each other."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    system = f"{platform.system()} {platform.machine()}"
    return f"{model}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}"
