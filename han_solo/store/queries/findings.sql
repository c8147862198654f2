-- name: see_finding(guard, agent_id, key, severity, summary, hint, detail, now)^
-- Open a finding, or note that an open one was seen again; the figures are those of the last look.
INSERT INTO han_solo.findings (
    guard, agent_id, key, severity, summary, hint, detail, opened_at, last_seen_at
)
VALUES (
    :guard, :agent_id, :key, :severity, :summary, :hint, :detail,
    :now::timestamptz, :now::timestamptz
)
ON CONFLICT (guard, agent_id, key) WHERE resolved_at IS NULL
DO UPDATE SET
    severity = excluded.severity,
    summary = excluded.summary,
    hint = excluded.hint,
    detail = excluded.detail,
    last_seen_at = greatest(findings.last_seen_at, excluded.last_seen_at),
    times_seen = findings.times_seen + 1
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

-- name: note_run(guard, agent_id, finished_at, looked_at, duration_ms, findings, error)!
-- Keep the last run of a guard; one that could not look keeps the time when it last could.
INSERT INTO han_solo.guard_runs (
    guard, agent_id, finished_at, looked_at, duration_ms, findings, error
)
VALUES (
    :guard, :agent_id, :finished_at, :looked_at, :duration_ms, :findings, :error
)
ON CONFLICT (guard, agent_id)
DO UPDATE SET
    finished_at = excluded.finished_at,
    looked_at = coalesce(excluded.looked_at, guard_runs.looked_at),
    duration_ms = excluded.duration_ms,
    findings = excluded.findings,
    error = excluded.error;

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

-- name: list_unalerted(agent_id)
-- List the findings whose alert did not go out yet, those that were repaired meanwhile too.
SELECT
    id, guard, agent_id, key, severity, summary, hint, detail,
    opened_at, last_seen_at, times_seen, alerted_at, resolved_at
FROM han_solo.findings
WHERE agent_id = :agent_id
    AND alerted_at IS NULL
ORDER BY id;

-- name: claim_alert(id, now)$
-- Take the alert of a finding on oneself; null when it was taken already.
UPDATE han_solo.findings
SET alerted_at = :now
WHERE id = :id
    AND alerted_at IS NULL
RETURNING id;

-- name: return_alert(id)!
-- Give the alert of a finding back, since it did not go out.
UPDATE han_solo.findings
SET alerted_at = NULL
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
