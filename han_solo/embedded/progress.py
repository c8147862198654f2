"""Progress of long steps, as those who take the steps report it.

The builders and starters here report to a ``Progress``; a terminal draws it with rich, and where
nobody looks (a test, a service) it is silent. ``up`` chooses.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as RichBars


class StepHandle(Protocol):
    """One step under way. ``total`` and ``advance`` share a unit that the step chooses."""

    def advance(self, amount: float) -> None: ...

    def set_total(self, total: float) -> None: ...

    def update(self, text: str) -> None: ...

    def done(self, text: str) -> None: ...

    def failed(self, text: str) -> None: ...


class Progress(Protocol):
    """Where steps are reported to."""

    def step(self, name: str, total: float | None = None) -> StepHandle: ...


@dataclass(frozen=True, slots=True)
class _SilentStep:
    def advance(self, amount: float) -> None:
        """Drop it."""

    def set_total(self, total: float) -> None:
        """Drop it."""

    def update(self, text: str) -> None:
        """Drop it."""

    def done(self, text: str) -> None:
        """Drop it."""

    def failed(self, text: str) -> None:
        """Drop it."""


@dataclass(frozen=True, slots=True)
class SilentProgress:
    """Reports to nobody."""

    def step(self, name: str, total: float | None = None) -> StepHandle:  # noqa: ARG002 the protocol
        return _SilentStep()


@dataclass(frozen=True, slots=True)
class _TerminalStep:
    bars: RichBars
    task: TaskID

    def advance(self, amount: float) -> None:
        self.bars.advance(self.task, amount)

    def set_total(self, total: float) -> None:
        self.bars.update(self.task, total=total)

    def update(self, text: str) -> None:
        self.bars.update(self.task, note=_plain(text))

    def done(self, text: str) -> None:
        self._finish("[green]✓[/]", text)

    def failed(self, text: str) -> None:
        self._finish("[red]✗[/]", text)

    def _finish(self, mark: str, text: str) -> None:
        total = self.bars.tasks[self.bars.task_ids.index(self.task)].total or 1
        self.bars.update(self.task, total=total, completed=total, mark=mark, note=_plain(text))
        self.bars.stop_task(self.task)


class TerminalProgress:
    """Draws the steps with rich; use it as a context manager.

    On something other than a terminal rich draws the final state once, at the end.
    """

    def __init__(self, console: Console) -> None:
        self._bars = RichBars(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.fields[mark]}"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}[/]"),
            console=console,
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def step(self, name: str, total: float | None = None) -> StepHandle:
        task = self._bars.add_task(_plain(name), total=total, mark=" ", note="")
        return _TerminalStep(self._bars, task)


@dataclass(slots=True)
class _LineStep:
    stream: TextIO
    name: str
    total: float | None
    began: float
    seen: float = 0.0
    shown_thirds: int = 0

    def advance(self, amount: float) -> None:
        """Write a line at each third, so that a log shows that a long download moves."""
        self.seen += amount
        if self.total:
            thirds = int(self.seen / self.total * 3)
            if self.shown_thirds < thirds < 3:  # noqa: PLR2004 - three thirds are the end
                self.shown_thirds = thirds
                self._write(f"{self.seen / self.total:.0%}")

    def set_total(self, total: float) -> None:
        self.total = total

    def update(self, text: str) -> None:
        """Drop it: only what ends a step is worth a line in a log."""

    def done(self, text: str) -> None:
        self._write(f"done in {time.monotonic() - self.began:.0f} s  {text}")

    def failed(self, text: str) -> None:
        self._write(f"failed: {text}")

    def _write(self, text: str) -> None:
        print(f"{self.name}: {text}", file=self.stream, flush=True)


@dataclass(frozen=True, slots=True)
class LineProgress:
    """Writes a line as each step ends, for a log or a pipe."""

    stream: TextIO

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def step(self, name: str, total: float | None = None) -> StepHandle:
        return _LineStep(self.stream, name, total, time.monotonic())


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
