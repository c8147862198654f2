-- name: see_finding(guard, agent_id, key, severity, summary, hint, detail, now)^
-- Open a finding, or note that an open one was seen again; the figures are those of the last look.
INSERT INTO han_solo.findings (
    guard, agent_id, key, severity, summary, hint, detail, opened_at, last_seen_at, alert_due_at
)
VALUES (
    :guard, :agent_id, :key, :severity, :summary, :hint, :detail,
    :now::timestamptz, :now::timestamptz, :now::timestamptz
)
ON CONFLICT (guard, agent_id, key) WHERE resolved_at IS NULL
DO UPDATE SET
    severity = excluded.severity,
    summary = excluded.summary,
    hint = excluded.hint,
    detail = excluded.detail,
    last_seen_at = greatest(findings.last_seen_at, excluded.last_seen_at),
    times_seen = findings.times_seen + 1,
    alert_due_at = CASE
        WHEN excluded.severity = 'critical' AND findings.alerted_as = 'warning'
            THEN coalesce(findings.alert_due_at, excluded.alert_due_at)
        ELSE findings.alert_due_at
    END
RETURNING id, times_seen = 1 AS is_new;

-- name: resolve_others(guard, agent_id, seen_ids, now)
-- Close a guard's open findings that were not seen this time.
UPDATE han_solo.findings
SET resolved_at = greatest(:now::timestamptz, last_seen_at)
WHERE guard = :guard
    AND agent_id = :agent_id
    AND resolved_at IS NULL
    AND id <> ALL (:seen_ids::bigint[])
RETURNING id, key;

-- name: resolve_unwatched(agent_id, watched, now)
-- Close the open findings of guards that no longer run.
UPDATE han_solo.findings
SET resolved_at = greatest(:now::timestamptz, last_seen_at)
WHERE agent_id = :agent_id
    AND resolved_at IS NULL
    AND guard <> ALL (:watched::text[])
RETURNING guard, key;

-- name: count_runs(guard, agent_id)$
-- Count how often a guard was recorded; null when it never was.
SELECT runs
FROM han_solo.guard_runs
WHERE guard = :guard
    AND agent_id = :agent_id;

-- name: note_run(guard, agent_id, finished_at, looked_at, duration_ms, findings, error, runs)$
-- Keep the last run of a guard; null when another was recorded since that count of runs.
INSERT INTO han_solo.guard_runs AS run (
    guard, agent_id, finished_at, looked_at, duration_ms, findings, error
)
VALUES (
    :guard, :agent_id, :finished_at, :looked_at, :duration_ms, :findings, :error
)
ON CONFLICT (guard, agent_id)
DO UPDATE SET
    finished_at = excluded.finished_at,
    looked_at = coalesce(excluded.looked_at, run.looked_at),
    duration_ms = excluded.duration_ms,
    findings = excluded.findings,
    error = excluded.error,
    runs = run.runs + 1
WHERE :runs::bigint IS NULL
    OR run.runs = :runs
RETURNING runs;

-- name: list_runs(agent_id)
-- List the last run of each guard for an agent.
SELECT guard, agent_id, finished_at, looked_at, duration_ms, findings, error
FROM han_solo.guard_runs
WHERE agent_id = :agent_id
ORDER BY guard;

-- name: list_open(agent_id, guard)
-- List open findings, the oldest first; of one guard, or of all.
SELECT
    id, guard, agent_id, key, severity, summary, hint, detail,
    opened_at, last_seen_at, times_seen, alerted_at, resolved_at
FROM han_solo.findings
WHERE agent_id = :agent_id
    AND resolved_at IS NULL
    AND (:guard::text IS NULL OR guard = :guard)
ORDER BY opened_at, id;

-- name: list_history(agent_id, guard, limit_rows)
-- List findings, open or not, the newest first.
SELECT
    id, guard, agent_id, key, severity, summary, hint, detail,
    opened_at, last_seen_at, times_seen, alerted_at, resolved_at
FROM han_solo.findings
WHERE agent_id = :agent_id
    AND (:guard::text IS NULL OR guard = :guard)
ORDER BY id DESC
LIMIT :limit_rows;

-- name: claim_alerts(agent_id, now, least_pause, longest_pause, not_before)
-- Take the alerts that are due; they are due again later, after twice as long, if they do not go out.
UPDATE han_solo.findings
SET alert_due_at = :now::timestamptz
    + least(greatest(:now::timestamptz - opened_at, :least_pause::interval),
        :longest_pause::interval)
WHERE agent_id = :agent_id
    AND alert_due_at <= :now::timestamptz
    AND (resolved_at IS NULL OR opened_at > :not_before::timestamptz)
RETURNING
    id, guard, agent_id, key, severity, summary, hint, detail,
    opened_at, last_seen_at, times_seen, alerted_at, resolved_at;

-- name: note_alerted(id, severity, now)!
-- Note that the alert went out; one that became critical meanwhile is due once more.
UPDATE han_solo.findings
SET
    alerted_at = :now::timestamptz,
    alerted_as = :severity,
    alert_due_at = CASE
        WHEN severity = 'critical' AND :severity::text = 'warning' THEN :now::timestamptz
    END
WHERE id = :id;

-- name: abandon_remedies(agent_id, epoch, now)!
-- Close the remedies that an earlier leader left running.
UPDATE han_solo.remedies
SET
    finished_at = greatest(:now::timestamptz, started_at),
    outcome = 'abandoned',
    what = 'Its process ended or lost the lead before it was done.'
WHERE agent_id = :agent_id
    AND epoch < :epoch
    AND finished_at IS NULL;

-- name: start_remedy(guard, agent_id, agent_name, finding_ids, epoch, now)$
-- Open a remedy, if the epoch is the leader's still; null when somebody else leads.
INSERT INTO han_solo.remedies (guard, agent_id, finding_ids, epoch, started_at)
SELECT :guard, :agent_id, :finding_ids::bigint[], leader.epoch, :now::timestamptz
FROM han_solo.leaders AS leader
WHERE leader.agent_name = :agent_name
    AND leader.epoch = :epoch
FOR SHARE OF leader
RETURNING id;

-- name: finish_remedy(id, outcome, what, now)$
-- Close a remedy; null when a later leader has closed it already.
UPDATE han_solo.remedies
SET
    finished_at = greatest(:now::timestamptz, started_at),
    outcome = :outcome,
    what = :what
WHERE id = :id
    AND finished_at IS NULL
RETURNING id;

-- name: list_remedies(agent_id, guard, limit_rows)
-- List attempts to repair, the newest first; of one guard, or of all.
SELECT id, guard, agent_id, finding_ids, epoch, started_at, finished_at, outcome, what
FROM han_solo.remedies
WHERE agent_id = :agent_id
    AND (:guard::text IS NULL OR guard = :guard)
ORDER BY id DESC
LIMIT :limit_rows;

-- name: list_last_tries(guard, agent_id, limit_rows)
-- List the last attempts of a guard that came to an end by themselves, the newest first.
SELECT outcome, finished_at, finding_ids
FROM han_solo.remedies
WHERE guard = :guard
    AND agent_id = :agent_id
    AND outcome IN ('done', 'no_effect', 'failed')
ORDER BY id DESC
LIMIT :limit_rows;

-- name: list_remedies_of(finding_ids)
-- List the attempts to repair any of these findings, the oldest first.
SELECT id, guard, agent_id, finding_ids, epoch, started_at, finished_at, outcome, what
FROM han_solo.remedies
WHERE finding_ids && :finding_ids::bigint[]
ORDER BY id;
