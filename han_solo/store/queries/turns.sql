-- name: join_queue(turn_id, agent_id, sender)^
-- Open the row of a turn that waits, tied to this session; no row when the id was used before.
INSERT INTO han_solo.turns (
    turn_id, agent_id, sender, backend_pid, backend_started_at, queued_at
)
SELECT
    :turn_id,
    :agent_id,
    :sender,
    pg_backend_pid(),
    (SELECT a.backend_start FROM pg_catalog.pg_stat_activity AS a WHERE a.pid = pg_backend_pid()),
    clock_timestamp()
ON CONFLICT (turn_id) DO NOTHING
RETURNING id;

-- name: count_waiting(agent_id)$
-- Count those who wait for an agent's floor and live.
SELECT count(*)
FROM han_solo.turns AS t
JOIN pg_catalog.pg_stat_activity AS a
    ON a.pid = t.backend_pid
    AND a.backend_start = t.backend_started_at
WHERE t.agent_id = :agent_id
    AND t.outcome IS NULL
    AND t.started_at IS NULL;

-- name: try_floor(id, agent_id, key)$
-- Take the floor for this session, unless someone has it or a living sender waited before us.
SELECT
    CASE
        WHEN EXISTS (
            SELECT 1
            FROM han_solo.turns AS t
            JOIN pg_catalog.pg_stat_activity AS a
                ON a.pid = t.backend_pid
                AND a.backend_start = t.backend_started_at
            WHERE t.agent_id = :agent_id
                AND t.outcome IS NULL
                AND t.started_at IS NULL
                AND t.id < :id
        ) THEN false
        ELSE pg_try_advisory_lock(:key::bigint)
    END;

-- name: leave_queue(turn_id)!
-- Close the row of a turn that never began.
UPDATE han_solo.turns
SET
    ended_at = clock_timestamp(),
    outcome = 'not_sent'
WHERE turn_id = :turn_id
    AND started_at IS NULL
    AND outcome IS NULL;

-- name: leave_floor(key)$
-- Give the floor back.
SELECT pg_advisory_unlock(:key::bigint);

-- name: keep_alive()$
-- Keep the session from being cut as idle.
SELECT 1;

-- name: fetch_holder(agent_id, turn_id)^
-- Return who lives and is before us: the one in a turn, or else the first of those who wait.
SELECT
    t.sender,
    t.started_at,
    coalesce(t.started_at, t.queued_at) AS since,
    date_part('epoch', clock_timestamp() - coalesce(t.started_at, t.queued_at)) AS for_s
FROM han_solo.turns AS t
JOIN pg_catalog.pg_stat_activity AS a
    ON a.pid = t.backend_pid
    AND a.backend_start = t.backend_started_at
WHERE t.agent_id = :agent_id
    AND t.outcome IS NULL
    AND t.turn_id <> :turn_id
ORDER BY t.started_at NULLS LAST, t.id
LIMIT 1;

-- name: fetch_rest_s(agent_id)$
-- Return the seconds since the agent's last turn ended, null when it had none.
SELECT date_part('epoch', clock_timestamp() - max(last.ended_at))
FROM (
    SELECT t.ended_at
    FROM han_solo.turns AS t
    WHERE t.agent_id = :agent_id
        AND t.started_at IS NOT NULL
    ORDER BY t.id DESC
    LIMIT 50
) AS last;

-- name: begin_turn(turn_id)$
-- Note that the sender has the floor and sends now.
UPDATE han_solo.turns
SET started_at = clock_timestamp()
WHERE turn_id = :turn_id
RETURNING started_at;

-- name: end_turn(turn_id, outcome, cause, stop_reason, steps, tools, run_id, reverted)$
-- Note what came of a turn; one that was settled already is left as it is.
UPDATE han_solo.turns
SET
    ended_at = clock_timestamp(),
    outcome = :outcome,
    cause = :cause,
    stop_reason = :stop_reason,
    steps = :steps,
    tools = :tools,
    run_id = coalesce(:run_id, run_id),
    reverted = coalesce(:reverted, reverted)
WHERE turn_id = :turn_id
    AND (outcome IS NULL OR outcome = 'unknown')
RETURNING ended_at;

-- name: drop_dead_waiters(agent_id)!
-- Close the rows of senders that died while they waited: they sent nothing.
UPDATE han_solo.turns AS t
SET
    ended_at = clock_timestamp(),
    outcome = 'not_sent'
WHERE t.agent_id = :agent_id
    AND t.outcome IS NULL
    AND t.started_at IS NULL
    AND NOT EXISTS (
        SELECT 1
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.pid = t.backend_pid
            AND a.backend_start = t.backend_started_at
    );

-- name: list_unsettled(agent_id)
-- List the turns that were begun and of which nobody living knows what came of them.
SELECT
    t.turn_id,
    date_part('epoch', clock_timestamp() - t.started_at) AS age_s
FROM han_solo.turns AS t
WHERE t.agent_id = :agent_id
    AND t.started_at IS NOT NULL
    AND (t.outcome IS NULL OR t.outcome = 'unknown')
    AND NOT EXISTS (
        SELECT 1
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.pid = t.backend_pid
            AND a.backend_start = t.backend_started_at
            AND t.outcome IS NULL
    )
ORDER BY t.id
LIMIT 100;

-- name: find_turn(turn_id)^
-- Find a turn by its id.
SELECT
    t.turn_id, t.agent_id, t.sender, t.queued_at, t.started_at, t.ended_at, t.outcome, t.cause,
    t.stop_reason, t.steps, t.tools, t.run_id, t.reverted,
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.pid = t.backend_pid
            AND a.backend_start = t.backend_started_at
            AND t.outcome IS NULL
    ) AS sender_lives
FROM han_solo.turns AS t
WHERE t.turn_id = :turn_id;

-- name: list_turns(agent_id, limit_rows)
-- List the last turns of an agent, newest first.
SELECT
    t.turn_id, t.agent_id, t.sender, t.queued_at, t.started_at, t.ended_at, t.outcome, t.cause,
    t.stop_reason, t.steps, t.tools, t.run_id, t.reverted,
    EXISTS (
        SELECT 1
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.pid = t.backend_pid
            AND a.backend_start = t.backend_started_at
            AND t.outcome IS NULL
    ) AS sender_lives
FROM han_solo.turns AS t
WHERE t.agent_id = :agent_id
ORDER BY t.id DESC
LIMIT :limit_rows;
