-- name: see_tool(agent_id, tool_name, tool_id, server, seen_at)!
-- Note that a tool is attached.
INSERT INTO han_solo.tool_snapshots (agent_id, tool_name, tool_id, server, seen_at)
VALUES (:agent_id, :tool_name, :tool_id, :server, :seen_at)
ON CONFLICT (agent_id, tool_name)
DO UPDATE SET
    tool_id = excluded.tool_id,
    server = excluded.server,
    seen_at = greatest(tool_snapshots.seen_at, excluded.seen_at),
    missing_since = NULL;

-- name: miss_tool(agent_id, tool_name, missing_since)$
-- Note that a tool is gone; returns since when.
UPDATE han_solo.tool_snapshots
SET missing_since = coalesce(missing_since, greatest(:missing_since::timestamptz, seen_at))
WHERE agent_id = :agent_id
    AND tool_name = :tool_name
RETURNING missing_since;

-- name: forget_tool(agent_id, tool_name)!
-- Forget a tool that was detached on purpose.
DELETE FROM han_solo.tool_snapshots
WHERE agent_id = :agent_id
    AND tool_name = :tool_name;

-- name: list_tools(agent_id)
-- List what was attached to an agent.
SELECT agent_id, tool_name, tool_id, server, seen_at, missing_since
FROM han_solo.tool_snapshots
WHERE agent_id = :agent_id
ORDER BY tool_name;

-- name: list_agents()
-- List every known agent, by the name of its spec.
SELECT name, agent_id
FROM han_solo.agents
ORDER BY name;
