"""``sync-tools``, also ``han-solo sync-tools``: show the plan, ask, apply it, say what came of it.

On stdout with ``--json`` stands one JSON object and nothing else. Without a terminal nothing is
applied that was not asked for with ``--yes``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .run import EXIT_DRIFT, EXIT_FAILED, command, err, is_terminal, out, settings, start

if TYPE_CHECKING:
    from ..errors import HanSoloError
    from ..reconcile.ensure import Outcome
    from ..reconcile.model import Consent
    from ..reconcile.plan import Plan
    from ..reconcile.probe import Probe
    from .sync_session import SyncSession

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show the plan; exit 3 when there is drift.")
]
Prune = Annotated[
    bool,
    typer.Option("--prune", help="Detach tools that are not declared. They are never deleted."),
]
DetachMemory = Annotated[
    bool,
    typer.Option(
        "--detach-builtin-memory",
        help="Detach Letta's own memory tools, which undo block writes.",
    ),
]
ProbeNew = Annotated[
    bool, typer.Option("--probe", help="Run each new tool that reads once through Letta.")
]
Json = Annotated[bool, typer.Option("--json", help="Print plan and outcome as JSON.")]


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sync-tools")(sync_tools)


def build_app() -> typer.Typer:
    """Make the command ``sync-tools`` stand by itself."""
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command()(sync_tools)
    return app


def main() -> None:
    """Run it as the command ``sync-tools``."""
    start(build_app())


@command
async def sync_tools(
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    prune: Prune = False,
    detach_builtin_memory: DetachMemory = False,
    probe: ProbeNew = False,
    as_json: Json = False,
) -> int:
    """Bring the agent's tools, blocks and settings in line with their declaration.

    Shows what would be done, what would not and why, and asks first.

    Exit codes: 0 in sync; 1 a probe failed; 2 refused or failed; 3 drift is left.
    """
    from .sync_session import open_session

    consent: set[Consent] = set()
    if prune:
        consent.add("prune")
    if detach_builtin_memory:
        consent.add("detach_builtin_memory")
    async with open_session(settings()) as session:
        plan = await session.make_plan(consent)
        if not as_json:
            _show_plan(session, plan)
        if as_json and (dry_run or (plan and plan.refusal)):
            _print_json(session, plan)
        _raise_refused(plan)
        if dry_run:
            return 0 if plan and plan.in_sync else EXIT_DRIFT
        can_ask = is_terminal() and not as_json and not yes
        if can_ask and _offers_detaching(plan, consent):
            consent, plan = await _offer_detaching(session, consent, plan)
        if _has_work(plan) and not _agree(can_ask=can_ask, yes=yes):
            out().print("Nothing was changed.")
            return EXIT_DRIFT
        outcome = await _apply(session, consent, plan, as_json=as_json)
        probes = await session.probe(outcome) if probe else ()
    if as_json:
        _print_json(session, plan, outcome, probes)
    else:
        _show_outcome(outcome, probes, probed=probe)
    return _exit_code(outcome, probes)


async def _apply(
    session: SyncSession, consent: set[Consent], plan: Plan | None, *, as_json: bool
) -> Outcome:
    from ..errors import HanSoloError

    try:
        if as_json or not out().is_terminal:
            return await session.apply(consent, plan)
        with out().status("Applying, and reading each step back"):
            return await session.apply(consent, plan)
    except HanSoloError as error:
        if as_json:
            _print_json(session, plan, error=error)
        raise


def _exit_code(outcome: Outcome, probes: tuple[Probe, ...]) -> int:
    if any(probe.outcome == "failed" for probe in probes):
        return EXIT_FAILED
    return 0 if outcome.in_sync else EXIT_DRIFT


def _has_work(plan: Plan | None) -> bool:
    return plan is None or bool(plan.steps)


def _raise_refused(plan: Plan | None) -> None:
    from ..errors import PlanRefused

    if plan and plan.refusal:
        refusal = plan.refusal
        raise PlanRefused(refusal.sentence, reason=refusal.reason, hint=refusal.hint)


def _agree(*, can_ask: bool, yes: bool) -> bool:
    """Ask, or take ``--yes`` for the answer.

    Raises:
        UsageError: nobody can be asked.
    """
    from ..errors import UsageError

    if yes:
        return True
    if not can_ask:
        raise UsageError(
            "Nobody can be asked here (no terminal, or --json), so nothing was changed.",
            hint="Apply the plan with --yes, or only look at it with --dry-run.",
        )
    return typer.confirm("Apply this plan?", default=False)


def _offers_detaching(plan: Plan | None, consent: set[Consent]) -> bool:
    if plan is None or consent:
        return False
    return any(
        finding.kind == "builtin_memory_tools" and "--detach" in finding.hint
        for finding in plan.findings
    )


async def _offer_detaching(
    session: SyncSession, consent: set[Consent], plan: Plan | None
) -> tuple[set[Consent], Plan | None]:
    """Ask about Letta's memory tools apart from the rest: it takes away something they had."""
    if typer.confirm("Detach Letta's memory tools as well?", default=False):
        consent = {*consent, "detach_builtin_memory"}
        plan = await session.make_plan(consent)
        _show_plan(session, plan)
    return consent, plan


def _show_plan(session: SyncSession, plan: Plan | None) -> None:
    from .sync_view import build_plan_views

    for view in build_plan_views(session.services.spec, session.services.declared, plan):
        out().print(view)
        out().print()


def _show_outcome(outcome: Outcome, probes: tuple[Probe, ...], *, probed: bool) -> None:
    from .sync_view import build_outcome_views, build_probe_view

    for view in build_outcome_views(outcome):
        out().print(view)
    if probed:
        out().print(build_probe_view(probes))


def _print_json(
    session: SyncSession,
    plan: Plan | None,
    outcome: Outcome | None = None,
    probes: tuple[Probe, ...] = (),
    error: HanSoloError | None = None,
) -> None:
    import dataclasses

    from ..reconcile.plan import plan_json

    body = {
        "agent": session.services.spec.name,
        "agent_id": outcome.agent_id if outcome else session.agent_id,
        "in_sync": outcome.in_sync if outcome else bool(plan and plan.in_sync),
        "plan": None if plan is None else plan_json(plan),
        "outcome": None if outcome is None else outcome.to_json(),
        "probes": [dataclasses.asdict(probe) for probe in probes],
        "error": None if error is None else str(error),
    }
    typer.echo(json.dumps(body, indent=2, ensure_ascii=False))
    if plan is None and outcome is None:
        err().print("There is no agent yet; a sync makes it.", style="dim")
