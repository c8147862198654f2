-- name: try_lock(key)$
-- Take a reconcile lock for this session, or say at once that someone has it.
SELECT pg_try_advisory_lock(:key::bigint);

-- name: unlock(key)$
-- Give a reconcile lock back.
SELECT pg_advisory_unlock(:key::bigint);

-- name: abandon_runs(agent_name, finished_at)!
-- Close the runs whose process ended before they did; only for the holder of the lock.
UPDATE han_solo.reconcile_runs
SET
    finished_at = greatest(:finished_at::timestamptz, started_at),
    outcome = 'abandoned'
WHERE agent_name = :agent_name
    AND outcome IS NULL;

-- name: insert_run(run_id, agent_name, agent_id, started_at, plan)!
-- Open a run.
INSERT INTO han_solo.reconcile_runs (run_id, agent_name, agent_id, started_at, plan)
VALUES (:run_id, :agent_name, :agent_id, :started_at, :plan);

-- name: finish_run(run_id, finished_at, outcome, error)!
-- Close a run.
UPDATE han_solo.reconcile_runs
SET
    finished_at = greatest(:finished_at::timestamptz, started_at),
    outcome = :outcome,
    error = :error
WHERE run_id = :run_id;

-- name: insert_step(run_id, position, kind, target, outcome, detail, at)!
-- Note what became of a step.
INSERT INTO han_solo.reconcile_steps (run_id, position, kind, target, outcome, detail, at)
VALUES (:run_id, :position, :kind, :target, :outcome, :detail, :at);

-- name: list_runs(agent_name, limit_rows)
-- List the last runs of an agent, newest first.
SELECT run_id, agent_name, agent_id, started_at, finished_at, outcome, plan, error
FROM han_solo.reconcile_runs
WHERE agent_name = :agent_name
ORDER BY id DESC
LIMIT :limit_rows;

-- name: list_steps(run_id)
-- List what became of a run's steps, in the plan's order.
SELECT position, kind, target, outcome, detail, at
FROM han_solo.reconcile_steps
WHERE run_id = :run_id
ORDER BY position;
