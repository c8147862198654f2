"""``switch-model``, also ``han-solo switch-model``: show two plans, ask, switch, try, or go back.

On stdout with ``--json`` stands one JSON object and nothing else. Without a terminal nothing is
switched that was not asked for with ``--yes``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .run import EXIT_DRIFT, command, is_terminal, out, settings, start

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..errors import HanSoloError
    from ..reconcile.switch.plan import SwitchPlan
    from ..reconcile.switch.preflight import Wanted
    from ..reconcile.switch.run import Switched
    from ..settings import Settings
    from .switch_session import SwitchSession

Handle = Annotated[
    str | None,
    typer.Argument(
        metavar="[HANDLE]", help="The model, provider/name as Letta lists it.", show_default=False
    ),
]
Back = Annotated[bool, typer.Option("--back", help="To the model from before the last switch.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show the plans; exit 3 when they change something.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Switch without asking.")]
Json = Annotated[bool, typer.Option("--json", help="Print plan and outcome as JSON.")]
ContextWindow = Annotated[
    int | None,
    typer.Option(help="Tokens. Default: as it is now; a smaller one has to be asked for.", min=1),
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Tokens of one answer. Default: as it is now.", min=1)
]
CanaryTimeout = Annotated[
    float,
    typer.Option("--canary-timeout", help="Seconds for the canary to answer.", min=1, max=900),
]
History = Annotated[bool, typer.Option("--history", help="Only show the last switches.")]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("switch-model")(switch)


def build_app() -> typer.Typer:
    """Make the command ``switch-model`` stand by itself."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(switch)
    return app


def main() -> None:
    """Run it as the command ``switch-model``."""
    start(build_app())


@command
async def switch(
    handle: Handle = None,
    *,
    back: Back = False,
    context_window: ContextWindow = None,
    max_tokens: MaxTokens = None,
    canary_timeout_s: CanaryTimeout = 120.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
    history: History = False,
) -> int:
    """Give the agent another model, with its settings, its tools and its voice intact.

    Shows both plans and asks first. The new model has to answer; otherwise everything goes back.

    Exit codes: 0 done, or nothing to do; 1 tried, and the old model is back; 2 refused or failed;
    3 something would change.
    """
    from ..reconcile.switch.config import Asked
    from ..reconcile.switch.preflight import Wanted
    from .switch_session import open_session

    _check_words(handle, back=back, history=history)
    wanted = Wanted(handle, Asked(context_window, max_tokens))
    chosen = settings()
    async with open_session(chosen, canary_timeout_s=canary_timeout_s) as session:
        if history:
            return await _show_history(session, as_json=as_json)
        plan = await _make_plan(session, wanted, as_json=as_json)
        if not as_json:
            _show_plan(plan)
        if dry_run or plan.is_empty:
            if as_json:
                _print_json(session, plan)
            return EXIT_DRIFT if dry_run and not plan.is_empty else 0
        if not _agree(can_ask=is_terminal() and not as_json, yes=yes):
            out().print("Nothing was changed.")
            return EXIT_DRIFT
        done = await _switch(session, wanted, plan, as_json=as_json)
    if as_json:
        _print_json(session, plan, done)
    else:
        _show_done(session, chosen, done)
    return 0


def _check_words(handle: str | None, *, back: bool, history: bool) -> None:
    from ..errors import UsageError

    if history or (handle is None) == back:
        return
    if back:
        raise UsageError(
            "--back goes to the model from before, so it takes no handle.",
            hint=f"Leave one of the two out: switch-model {handle}, or switch-model --back.",
        )
    raise UsageError(
        "Which model?",
        hint="Name it, provider/name as Letta lists it, or go --back. Letta's models are listed by "
        "han-solo providers list.",
    )


async def _make_plan(session: SwitchSession, wanted: Wanted, *, as_json: bool) -> SwitchPlan:
    from ..errors import HanSoloError

    try:
        return await session.make_plan(wanted)
    except HanSoloError as error:
        if as_json:
            _print_json(session, None, error=error)
        raise


async def _switch(
    session: SwitchSession, wanted: Wanted, plan: SwitchPlan, *, as_json: bool
) -> Switched:
    from ..errors import HanSoloError

    try:
        if as_json or not out().is_terminal:
            return await session.switch(wanted, plan)
        with out().status("Switching, reading back, and waiting for the canary to answer"):
            return await session.switch(wanted, plan)
    except HanSoloError as error:
        if as_json:
            _print_json(session, plan, error=error)
        raise


def _agree(*, can_ask: bool, yes: bool) -> bool:
    from ..errors import UsageError

    if yes:
        return True
    if not can_ask:
        raise UsageError(
            "Nobody can be asked here (no terminal, or --json), so nothing was changed.",
            hint="Switch with --yes, or only look at the plans with --dry-run.",
        )
    return typer.confirm("Switch?", default=False)


def _show_plan(plan: SwitchPlan) -> None:
    from .switch_view import build_plan_views

    for view in build_plan_views(plan):
        _print(view)
        out().print()


def _print(view: RenderableType) -> None:
    """Print it; a log or a pipe gets a sentence a line."""
    from rich.text import Text

    out().print(view, soft_wrap=isinstance(view, Text) and not out().is_terminal)


def _show_done(session: SwitchSession, chosen: Settings, done: Switched) -> None:
    from .switch_view import build_done_views

    for view in build_done_views(done, _tell_spec(session, chosen, done)):
        _print(view)


def _tell_spec(session: SwitchSession, chosen: Settings, done: Switched) -> str | None:
    """Say what the operator has to change, since a spec is theirs and is not written to."""
    from ..reconcile.diff_agent import name_handle_hint

    spec = session.services.spec
    handle = done.plan.to_handle
    if spec.model.handle == handle:
        return None
    if chosen.model:
        return f"HAN_SOLO_MODEL still names {spec.model.handle}. Set HAN_SOLO_MODEL={handle}."
    return f"The spec still names {spec.model.handle}. {name_handle_hint(spec, handle)}"


async def _show_history(session: SwitchSession, *, as_json: bool) -> int:
    from .switch_view import build_history

    rows = await session.services.journal.load()
    if as_json:
        typer.echo(json.dumps([row.to_json() for row in rows], indent=2, ensure_ascii=False))
    else:
        out().print(build_history(rows))
    return 0


def _print_json(
    session: SwitchSession,
    plan: SwitchPlan | None,
    done: Switched | None = None,
    error: HanSoloError | None = None,
) -> None:
    body = {
        "agent": session.services.spec.name,
        "agent_id": session.agent_id,
        "plan": None if plan is None else plan.to_json(),
        "outcome": None if done is None else done.to_json(),
        "spec_handle": session.services.spec.model.handle,
        "error": None if error is None else str(error),
        "reason": getattr(error, "reason", None),
    }
    typer.echo(json.dumps(body, indent=2, ensure_ascii=False))
