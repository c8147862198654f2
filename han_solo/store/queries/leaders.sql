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

-- name: fetch_leader(agent_name)^
-- Read who was elected last; whether that one still leads only its lock says.
SELECT epoch, holder, elected_at, heartbeat_at
FROM han_solo.leaders
WHERE agent_name = :agent_name;
