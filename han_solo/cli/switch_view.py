"""A switch as people read it: the two plans, what to know before, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..reconcile.switch.config import FieldChange, Why
from ..reconcile.switch.journal import SwitchRow
from ..reconcile.switch.plan import SwitchPlan
from ..reconcile.switch.run import Switched
from .sync_view import MAX_NAMED

ALWAYS_SHOWN: Final = (
    "handle",
    "context_window",
    "max_tokens",
    "temperature",
    "enable_reasoner",
    "max_reasoning_tokens",
)
"""What switches have broken before, so it is shown even where it stays."""

_WHY: Final[dict[Why, str]] = {
    "model": "of the new model",
    "carried": "carried over",
    "declared": "the agent spec says so",
    "asked": "asked for",
    "always_off": "always off, explicitly",
    "provider": "the new provider does not know the old value",
    "recorded": "as before the last switch",
}


def build_plan_views(plan: SwitchPlan) -> Iterator[RenderableType]:
    """Yield what to print before anything is done."""
    if plan.is_empty:
        yield Text(f"Nothing to do: {plan.agent_name} runs {plan.to_handle} with these settings.")
        return
    yield _build_config(plan)
    yield _build_tools(plan)
    yield Text(
        "Then a throw-away agent with these settings and tools, and no memory, has to answer. If "
        "it does not, or if anything reads back otherwise, the old settings go back."
    )
    if plan.notes:
        table = _table("To know before", "what", "source")
        for note in plan.notes:
            table.add_row(Text(note.sentence, "yellow"), Text(note.source or ""))
        yield table


def build_done_views(done: Switched, spec_hint: str | None) -> Iterator[RenderableType]:
    """Yield what to print about a switch that went through."""
    plan = done.plan
    answered = f" It answered in {done.trial.duration_ms / 1000:.1f} s." if done.trial else ""
    yield Text(
        f"Done: {plan.agent_name} runs {plan.to_handle}, read back.{answered} All "
        f"{len(plan.tools)} tools are attached.",
        "green",
    )
    if done.restored:
        yield Text(
            f"{len(done.restored)} tools were lost by the first plan and put back by the second: "
            f"{_join(done.restored)}.",
            "yellow",
        )
    if spec_hint:
        yield Text(spec_hint, "yellow")
    yield Text("To go back: switch-model --back")


def build_history(rows: Sequence[SwitchRow]) -> RenderableType:
    """Return the last switches."""
    if not rows:
        return Text("There was no switch yet.")
    table = _table("Switches, the last one first", "when (UTC)", "from", "to", "outcome", "")
    for row in rows:
        style = "green" if row.outcome == "done" else "yellow"
        table.add_row(
            f"{row.started_at:%Y-%m-%d %H:%M}",
            Text(row.from_handle),
            Text(row.to_handle),
            Text(row.outcome or "under way", style),
            Text(row.error or ""),
        )
    return table


def _build_config(plan: SwitchPlan) -> Table:
    table = _table(
        f"Plan 1 for {plan.agent_name}: llm_config alone, complete, then read back",
        "setting",
        "now",
        "then",
        "why",
    )
    shown = [field for field in plan.fields if field.is_change or field.name in ALWAYS_SHOWN]
    for field in sorted(shown, key=_rank):
        style = "bold" if field.is_change else "dim"
        table.add_row(
            Text(field.name, style),
            Text(_show(field.old)),
            Text(_show(field.new), style),
            Text(_WHY[field.why]),
        )
    rest = len(plan.fields) - len(shown)
    if rest:
        table.add_row(Text(f"{rest} others", "dim"), Text(""), Text("as they are", "dim"), Text(""))
    return table


def _build_tools(plan: SwitchPlan) -> Table:
    table = _table(
        "Plan 2: tool_ids alone, only if tools went missing by the first, then read back",
        "count",
        "which",
    )
    table.add_row(str(len(plan.tools)), Text(_join(sorted(plan.tools.values()))))
    return table


def _rank(field: FieldChange) -> tuple[int, str]:
    known = field.name in ALWAYS_SHOWN
    return (ALWAYS_SHOWN.index(field.name) if known else len(ALWAYS_SHOWN), field.name)


def _show(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _join(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, expand=False)
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "count" else "left")
    return table
