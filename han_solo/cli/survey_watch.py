"""What the survey says of the watch: the daemon, what guards have open, how the jobs stand."""

from __future__ import annotations

from datetime import UTC, datetime

from ..connections import Connections
from ..daemon.choice import choose
from ..daemon.presence import load_daemons
from ..errors import HanSoloError
from ..findings.service import Findings
from ..runs.describe import load_state
from ..runs.service import JobRuns
from ..store.database import Database
from .block_text import visible
from .survey_model import Level, Survey

LATE_S = 12.0
"""A leader beats every five seconds, and a spare takes over within ten."""

MOST_SHOWN = 5
"""Findings spelled out; `han-solo guards list` has them all."""


async def look_at_watch(
    connections: Connections, found: Survey, database: Database | None, agent_id: str | None
) -> None:
    """Look at the daemon, the findings and the jobs."""
    if database is None or found.spec is None:
        found.add("daemon", "unknown", "", "can be looked at once the database is there")
        return
    try:
        await _look_at_daemon(found, database, found.spec.name)
        if agent_id is not None:
            await _look_at_findings(connections, found, database, agent_id)
        await _look_at_jobs(connections, found, database)
    except HanSoloError as error:
        found.add("daemon", "unknown", "", error.message, error.hint)


async def _look_at_daemon(found: Survey, database: Database, agent_name: str) -> None:
    daemons = [row for row in await load_daemons(database, agent_name) if row.is_alive]
    leader = next((row for row in daemons if row.state == "leading"), None)
    spares = sum(row.state == "spare" for row in daemons)
    if leader is None:
        detail = f"{spares} stand by and none leads yet" if spares else "none runs: nothing watches"
        found.add(
            "daemon", "warning", "", detail,
            None if spares else "Run `han-solo up` (scripts/up), or `han-solo daemon`.",
        )  # fmt: skip
        return
    detail = f"leads in epoch {leader.epoch}, heartbeat {leader.age_s:.0f} s ago"
    if leader.age_s > LATE_S:
        found.add(
            "daemon", "warning", leader.holder,
            f"{detail}: it may be gone, and nobody has taken over; {spares} stand by",
            "Look whether it lives; `han-solo daemon` starts another.",
        )  # fmt: skip
        return
    found.add("daemon", "ok", leader.holder, f"{detail}, {spares} stand by" if spares else detail)


async def _look_at_findings(
    connections: Connections, found: Survey, database: Database, agent_id: str
) -> None:
    if found.registry is None:
        return
    findings = Findings(database)
    choices = choose(found.registry.guards, connections.settings)
    watched = {choice.name for choice in choices if choice.runs}
    rows = [row for row in await findings.list_open(agent_id) if row.guard in watched]
    runs = await findings.list_runs(agent_id)
    if not rows:
        if runs:
            last = max(run.finished_at for run in runs)
            age_s = (datetime.now(UTC) - last).total_seconds()
            found.add("guards", "ok", "", f"nothing is open; last look {max(age_s, 0):.0f} s ago")
        else:
            found.add("guards", "ok", "", "none has looked yet")
        return
    for row in rows[:MOST_SHOWN]:
        level: Level = "failed" if row.severity == "critical" else "warning"
        hint = f"{visible(row.hint)} (`han-solo guards explain {row.guard}`)"
        found.add(f"guard {row.guard}", level, "", visible(row.summary), hint)
    if len(rows) > MOST_SHOWN:
        found.add(
            "guards", "warning", "", f"{len(rows) - MOST_SHOWN} more findings are open",
            "See them with `han-solo guards list`.",
        )  # fmt: skip


async def _look_at_jobs(connections: Connections, found: Survey, database: Database) -> None:
    jobs = found.registry.jobs if found.registry else ()
    if not jobs:
        return
    runs = JobRuns(database)
    pause = await runs.load_pause()
    if pause.is_paused:
        why = f": {pause.reason}" if pause.reason else ""
        found.add("jobs", "warning", "", f"paused by {pause.by}{why}", "han-solo jobs resume")
        return
    now, zone = datetime.now(UTC), connections.settings.zone
    rows = [await load_state(runs, spec, now, zone) for spec in jobs]
    owed = [row for row in rows if row.last is not None and row.is_overdue(now)]
    for row in owed:
        assert row.last is not None
        found.add(
            f"job {row.spec.name}", "warning", "",
            f"owed for {row.due.name}; its last run came to {row.last.outcome or 'no end yet'}"
            + (f": {row.last.error}" if row.last.error else ""),
            f"han-solo jobs run {row.spec.name}",
        )  # fmt: skip
    if not owed:
        found.add("jobs", "ok", "", f"{len(jobs)} declared, none is overdue")
