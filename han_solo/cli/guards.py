"""``han-solo guards``: what watches the agent, what it found, and what was done about it.

A look at a terminal is recorded like the daemon's. It repairs only with ``--repair``, and then only
as the leader: two processes that repair one agent would undo each other.
"""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from . import run

app = typer.Typer(
    name="guards",
    help="What watches the agent: what it found, and what is done about it.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The guard; `han-solo guards list` shows them.")]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Guards; all that are not off.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
@run.command
async def list_(as_json: Json = False) -> int:
    """List the guards, how each stands, and what is open.

    Exit codes: 0 nothing is open; 1 it is not known; 3 findings are open.
    """
    from ..errors import HanSoloError
    from .guard_json import of_row
    from .guard_output import print_json, show_rows
    from .guard_session import Row, load_choices, open_records

    settings = run.settings()
    choices = load_choices(settings)
    fault: HanSoloError | None = None
    try:
        async with open_records(settings) as records:
            rows = await records.load_rows(choices)
    except HanSoloError as error:  # what is declared is shown all the same
        fault, rows = error, tuple(Row(choice) for choice in choices)
    if as_json:
        print_json(
            {
                "guards": [of_row(row) for row in rows],
                "error": None if fault is None else str(fault),
            }
        )
    else:
        show_rows(rows, is_known=fault is None)
        if fault is not None:
            run.show_error(fault)
    if fault is not None:
        return run.EXIT_FAILED
    return run.EXIT_DRIFT if any(row.open for row in rows) else 0


@app.command("run")
@run.command
async def run_(
    names: Names = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Apply the remedies too: of the guards named, or else of those in mode repair.",
        ),
    ] = False,
    alert: Annotated[
        bool, typer.Option("--alert", help="Send the alerts that are due, as the daemon does.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Look now, record what is found, and with --repair repair it.

    Exit codes: 0 nothing is open; 1 a guard could not look; 3 findings are open.
    """
    from ..daemon.alerts import Alerts
    from .guard_json import of_report
    from .guard_output import print_json, show_reports
    from .guard_session import open_guards, pick

    settings = run.settings()
    async with open_guards(settings) as session, contextlib.AsyncExitStack() as stack:
        chosen = pick(session.choices, names or [])
        sender = Alerts.connect(session.agent_name, settings.alert_urls) if alert else None
        lead = await stack.enter_async_context(session.leadership.try_lead()) if repair else None
        leader = None
        if repair and lead is None:
            last = await session.leadership.load_leader()
            leader = last.holder if last else "another process"
            asked = [c.name for c in chosen if c.spec.remedy and (names or c.mode == "repair")]
            if await session.ask_leader(asked):
                said = f"{leader} leads, and was asked to repair; this is how it stands now."
            else:
                said = f"{leader} leads and did not answer, so nothing was repaired; see status."
            run.err().print(said, style="yellow", markup=False)
        reports = await session.run(chosen, lead=lead, is_named=bool(names), alerts=sender)
    if as_json:
        print_json(
            {
                "agent_id": session.agent_id,
                "epoch": lead.epoch if lead else None,
                "leader": leader,
                "guards": [of_report(report) for report in reports],
            }
        )
    else:
        show_reports(reports, session.choices, repaired=repair)
    if any(report.findings for report in reports):
        return run.EXIT_DRIFT
    return run.EXIT_FAILED if any(report.outcome == "blind" for report in reports) else 0


@app.command()
@run.command
async def watch(
    names: Names = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", "-i", min=0.1, help="Seconds between two looks; each guard's own else."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look again and again, each guard at its interval; nothing is repaired.

    On a terminal a table is kept up to date; else a line is printed for each change, with --json an
    object. Ctrl-C ends it.
    """
    from .guard_session import open_guards, pick
    from .guard_watch import Watch

    async with open_guards(run.settings()) as session:
        chosen = pick(session.choices, names or [])
        await Watch(session, chosen, interval_s=interval, as_json=as_json).run()


@app.command()
@run.command
async def history(
    name: Annotated[str | None, typer.Argument(help="One guard; all by default.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Findings.")] = 20,
    as_json: Json = False,
) -> None:
    """List what was found, newest first, and what was done about it."""
    from datetime import UTC, datetime

    from .guard_json import of_finding, of_remedy
    from .guard_output import print_json, show_lines
    from .guard_session import load_choices, open_records, pick
    from .guard_view import build_history

    settings = run.settings()
    if name is not None:
        pick(load_choices(settings), [name])
    async with open_records(settings) as records:
        rows = await records.findings.history(records.agent_id, name, limit_rows=limit)
        remedies = await records.findings.list_remedies_of([row.id for row in rows])
    if as_json:
        print_json(
            {
                "findings": [of_finding(row) for row in rows],
                "remedies": [of_remedy(remedy) for remedy in remedies],
            }
        )
    elif not rows:
        run.out().print(
            f"{name or 'No guard'} has {'' if name is None else 'never '}found anything."
        )
    else:
        last = {finding_id: remedy for remedy in remedies for finding_id in remedy.finding_ids}
        show_lines(run.out(), build_history(rows, last, datetime.now(UTC)))


@app.command()
@run.command
async def explain(name: Name, as_json: Json = False) -> None:
    """Print what a guard looks for, and the incident that it exists for."""
    from ..incidents import find_page
    from .guard_json import of_choice
    from .guard_output import print_json, show_page
    from .guard_session import load_choices, pick

    (choice,) = pick(load_choices(run.settings()), [name])
    page = find_page(choice.spec)
    text = None if page is None else page.read_text(encoding="utf-8")
    if as_json:
        print_json({**of_choice(choice), "page": text})
    else:
        show_page(choice, text)


@app.command("test-alert")
@run.command
async def test_alert() -> None:
    """Send a test message wherever alerts go, so that the first real one arrives."""
    from ..daemon.alerts import Alerts
    from ..reconcile.spec import load_spec

    settings = run.settings()
    spec = load_spec(settings.agent_spec, person=settings.person)
    for name in await Alerts.connect(spec.name, settings.alert_urls).test():
        run.out().print(f"Sent: {name}", markup=False)
