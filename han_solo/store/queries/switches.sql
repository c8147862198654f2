-- name: insert_switch(switch_id, agent_name, agent_id, is_back, from_handle, to_handle, spec_handle, old_config, new_config, tool_ids, started_by, started_at)!
-- Note what is to be done; one switch of an agent is open at a time.
INSERT INTO han_solo.switches (
    switch_id, agent_name, agent_id, is_back, from_handle, to_handle, spec_handle,
    old_config, new_config, tool_ids, started_by, started_at
)
VALUES (
    :switch_id, :agent_name, :agent_id, :is_back, :from_handle, :to_handle, :spec_handle,
    :old_config, :new_config, :tool_ids, :started_by, :started_at
);

-- name: finish_switch(switch_id, outcome, error, finished_at)!
-- Note what came of it.
UPDATE han_solo.switches
SET
    finished_at = greatest(:finished_at::timestamptz, started_at),
    outcome = :outcome,
    error = :error
WHERE switch_id = :switch_id;

-- name: intend_step(switch_id, step, intended_at)$
-- Note that a step is about to be taken, and return its place.
INSERT INTO han_solo.switch_steps (switch_id, position, step, intended_at)
SELECT
    :switch_id::uuid,
    count(*)::integer,
    :step::text,
    :intended_at::timestamptz
FROM han_solo.switch_steps
WHERE switch_id = :switch_id::uuid
RETURNING position;

-- name: finish_step(switch_id, position, outcome, detail, finished_at)!
-- Note what came of a step.
UPDATE han_solo.switch_steps
SET
    finished_at = greatest(:finished_at::timestamptz, intended_at),
    outcome = :outcome,
    detail = :detail
WHERE switch_id = :switch_id
    AND position = :position;

-- name: list_steps(switch_id)
-- List a switch's steps, in order.
SELECT position, step, intended_at, finished_at, outcome, detail
FROM han_solo.switch_steps
WHERE switch_id = :switch_id
ORDER BY position;

-- name: find_open(agent_name)^
-- Find the switch of an agent that is under way, or whose process died.
SELECT
    switch_id, agent_id, is_back, from_handle, to_handle, spec_handle, old_config, new_config,
    tool_ids, started_by, started_at, finished_at, outcome, error
FROM han_solo.switches
WHERE agent_name = :agent_name
    AND finished_at IS NULL
ORDER BY id
LIMIT 1;

-- name: find_last(agent_id, with_open)^
-- Find the last switch of an agent that went through, or is under way.
SELECT
    switch_id, agent_id, is_back, from_handle, to_handle, spec_handle, old_config, new_config,
    tool_ids, started_by, started_at, finished_at, outcome, error
FROM han_solo.switches
WHERE agent_id = :agent_id
    AND (outcome = 'done' OR (:with_open::boolean AND outcome IS NULL))
ORDER BY id DESC
LIMIT 1;

-- name: list_switches(agent_name, limit_rows)
-- List the last switches of an agent, newest first.
SELECT
    switch_id, agent_id, is_back, from_handle, to_handle, spec_handle, old_config, new_config,
    tool_ids, started_by, started_at, finished_at, outcome, error
FROM han_solo.switches
WHERE agent_name = :agent_name
ORDER BY id DESC
LIMIT :limit_rows;

-- name: insert_canary(agent_id, owner_id, switch_id, made_at)!
-- Note a canary, before it is sent anything.
INSERT INTO han_solo.canaries (agent_id, owner_id, switch_id, made_at)
VALUES (:agent_id, :owner_id, :switch_id, :made_at)
ON CONFLICT (agent_id) DO NOTHING;

-- name: end_canary(agent_id, ended_at)!
-- Note that Letta has it no longer.
UPDATE han_solo.canaries
SET ended_at = greatest(:ended_at::timestamptz, made_at)
WHERE agent_id = :agent_id
    AND ended_at IS NULL;

-- name: list_left_canaries(agent_name)
-- List the canaries of an agent's switches that are still to be ended.
SELECT canaries.agent_id, canaries.owner_id
FROM han_solo.canaries
JOIN han_solo.switches USING (switch_id)
WHERE switches.agent_name = :agent_name
    AND canaries.ended_at IS NULL;

-- name: is_canary(agent_id)$
-- Say whether an agent is a canary, or was one.
SELECT EXISTS (
    SELECT 1
    FROM han_solo.canaries
    WHERE agent_id = :agent_id
);
