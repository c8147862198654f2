-- name: abandon_expired(job)!
-- Close the run of a job whose process died: its lease ran out.
UPDATE han_solo.job_runs
SET
    finished_at = greatest(clock_timestamp(), started_at),
    outcome = 'abandoned',
    error = 'Its process ended before it did: the lease ran out.'
WHERE job = :job
    AND finished_at IS NULL
    AND lease_until < clock_timestamp();

-- name: fetch_running(job)^
-- Fetch the run of a job that goes on now.
SELECT
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback
FROM han_solo.job_runs
WHERE job = :job
    AND finished_at IS NULL
    AND lease_until >= clock_timestamp();

-- name: list_period(job, period)
-- List the finished runs of a job for a period, the newest first.
SELECT
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback
FROM han_solo.job_runs
WHERE job = :job
    AND period = :period
    AND finished_at IS NOT NULL
ORDER BY id DESC;

-- name: start_run(job, period, due_at, is_extra, started_by, holder, lease_s)^
-- Open a run under a lease; no row when the period has its success and this is no extra run.
INSERT INTO han_solo.job_runs (
    job, period, due_at, is_extra, attempt, started_by, holder,
    started_at, heartbeat_at, lease_until
)
SELECT
    :job,
    :period,
    :due_at,
    :is_extra::boolean,
    (
        SELECT count(*) + 1
        FROM han_solo.job_runs AS earlier
        WHERE earlier.job = :job
            AND earlier.period = :period
    ),
    :started_by,
    :holder,
    moment.now,
    moment.now,
    moment.now + make_interval(secs => :lease_s)
FROM (SELECT clock_timestamp() AS now) AS moment
WHERE :is_extra::boolean
    OR NOT EXISTS (
        SELECT 1
        FROM han_solo.job_runs AS done
        WHERE done.job = :job
            AND done.period = :period
            AND done.outcome = 'succeeded'
    )
RETURNING
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback;

-- name: renew_lease(id, lease_s)$
-- Say that a run goes on; null when its lease was taken for dead.
UPDATE han_solo.job_runs
SET
    heartbeat_at = clock_timestamp(),
    lease_until = clock_timestamp() + make_interval(secs => :lease_s)
WHERE id = :id
    AND finished_at IS NULL
RETURNING id;

-- name: finish_run(id, outcome, may_run_again, evidence, error, traceback)^
-- Close a run; no row when its lease was taken for dead and another closed it.
UPDATE han_solo.job_runs
SET
    finished_at = greatest(clock_timestamp(), started_at),
    outcome = :outcome,
    may_run_again = :may_run_again,
    evidence = :evidence,
    error = :error,
    traceback = :traceback
WHERE id = :id
    AND finished_at IS NULL
RETURNING
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback;

-- name: list_history(job, limit_rows)
-- List runs, of one job or of all, the newest first.
SELECT
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback
FROM han_solo.job_runs
WHERE :job::text IS NULL OR job = :job
ORDER BY id DESC
LIMIT :limit_rows;

-- name: fetch_last(job, outcome)^
-- Fetch the last run of a job; with an outcome, the last that came to it.
SELECT
    id, job, period, due_at, is_extra, attempt, started_by, holder, started_at, heartbeat_at,
    lease_until, finished_at, outcome, may_run_again, evidence, error, traceback
FROM han_solo.job_runs
WHERE job = :job
    AND (:outcome::text IS NULL OR outcome = :outcome)
ORDER BY id DESC
LIMIT 1;

-- name: fetch_pause()^
-- Fetch the pause of all jobs.
SELECT value, updated_at, updated_by
FROM han_solo.config
WHERE key = 'jobs_paused';

-- name: set_pause(value, updated_by)!
-- Pause all jobs, or resume them.
INSERT INTO han_solo.config (key, value, updated_at, updated_by)
VALUES ('jobs_paused', :value, clock_timestamp(), :updated_by)
ON CONFLICT (key)
DO UPDATE SET
    value = excluded.value,
    updated_at = excluded.updated_at,
    updated_by = excluded.updated_by;

-- name: fetch_installed_at()$
-- Say since when this installation is there: nothing is owed from before.
SELECT min(applied_at)
FROM han_solo.migrations;
