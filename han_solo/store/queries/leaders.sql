-- name: limit_idle(idle_ms)$
-- Have the server end this session, and its lock, when it says nothing for so long.
SELECT set_config('idle_session_timeout', :idle_ms, false);

-- name: try_lock(key)$
-- Take an agent's lead for as long as this session lasts, if nobody has it.
SELECT pg_try_advisory_lock(:key::bigint);

-- name: elect(agent_name, holder, now)$
-- Begin an epoch of one's own, which ends every earlier one, and return its number.
INSERT INTO han_solo.leaders AS leader (agent_name, epoch, holder, elected_at, heartbeat_at)
VALUES (:agent_name, 1, :holder, :now, :now)
ON CONFLICT (agent_name)
DO UPDATE SET
    epoch = leader.epoch + 1,
    holder = excluded.holder,
    elected_at = excluded.elected_at,
    heartbeat_at = excluded.heartbeat_at
RETURNING epoch;

-- name: beat(agent_name, epoch)$
-- Say that the leader of this epoch lives; null when another was elected since.
UPDATE han_solo.leaders
SET heartbeat_at = clock_timestamp()
WHERE agent_name = :agent_name
    AND epoch = :epoch
RETURNING epoch;

-- name: fetch_leader(agent_name)^
-- Read who was elected last; whether that one still leads only its lock says.
SELECT epoch, holder, elected_at, heartbeat_at
FROM han_solo.leaders
WHERE agent_name = :agent_name;

-- name: note_daemon(holder, agent_name, state, epoch, started_at)!
-- Say that a daemon lives, and what it is.
INSERT INTO han_solo.daemons (holder, agent_name, state, epoch, started_at, heartbeat_at)
VALUES (:holder, :agent_name, :state, :epoch, :started_at, clock_timestamp())
ON CONFLICT (holder, agent_name)
DO UPDATE SET
    state = excluded.state,
    epoch = excluded.epoch,
    started_at = excluded.started_at,
    heartbeat_at = excluded.heartbeat_at;

-- name: forget_dead()!
-- Forget the daemons that said nothing for a day.
DELETE FROM han_solo.daemons
WHERE heartbeat_at < clock_timestamp() - interval '1 day';

-- name: list_daemons(agent_name)
-- List the daemons of an agent, the leader first, with the age of each heartbeat in seconds.
SELECT
    holder, agent_name, state, epoch, started_at, heartbeat_at,
    date_part('epoch', clock_timestamp() - heartbeat_at) AS age_s
FROM han_solo.daemons
WHERE agent_name = :agent_name
ORDER BY state = 'leading' DESC, heartbeat_at DESC;

-- name: ask(key, value, updated_by)!
-- Ask the leader of an agent for something; an older request is forgotten.
INSERT INTO han_solo.config (key, value, updated_at, updated_by)
VALUES (:key, :value, clock_timestamp(), :updated_by)
ON CONFLICT (key)
DO UPDATE SET
    value = excluded.value,
    updated_at = excluded.updated_at,
    updated_by = excluded.updated_by;

-- name: fetch_request(key)$
-- Read what was last asked, and whether it was done.
SELECT value
FROM han_solo.config
WHERE key = :key;

-- name: answer(key, id, value)!
-- Say what came of a request, unless another was made meanwhile.
UPDATE han_solo.config
SET
    value = :value,
    updated_at = clock_timestamp()
WHERE key = :key
    AND value ->> 'id' = :id::text;
