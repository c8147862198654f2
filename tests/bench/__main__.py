"""``scripts/bench NAME [--json]``: figures, goals and whether they are met; exit 3 where not."""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from han_solo import logs

from . import harness


def main() -> int:
    """Run the bench that the command line names."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure one thing.")
    benches = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name in harness.names():
        module = harness.load(name)
        first_line = (module.__doc__ or "").strip().splitlines()[0]
        bench = benches.add_parser(name, help=first_line, description=module.__doc__)
        bench.add_argument("--json", action="store_true", help="print the report as JSON")
        if hasattr(module, "add_options"):
            module.add_options(bench)
    options = parser.parse_args()
    logs.configure(level="warning")
    report = harness.run(options.name, options)
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        show(report)
    return 0 if report.met else 3


def show(report: harness.Report) -> None:
    """Print the report for a person."""
    console = Console(highlight=False)
    table = Table(title=f"bench {report.bench}", title_justify="left", caption_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("goal", justify="right")
    table.add_column("")
    for name, value in report.figures.items():
        goal = report.goals.get(name)
        bound = ""
        verdict = ""
        if goal:
            bound = f"at most {goal.max:g}" if goal.max is not None else f"at least {goal.min:g}"
            verdict = "[green]met[/]" if goal.is_met(value) else "[red]not met[/]"
        table.add_row(name, f"{value:,.2f}", bound, verdict)
    for name in report.goals.keys() - report.figures.keys():
        table.add_row(name, "not measured", "", "[red]not met[/]")
    console.print(table)
    console.print(harness.describe_machine(), style="dim")


if __name__ == "__main__":
    sys.exit(main())
