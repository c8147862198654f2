-- name: fetch_agent_id(name)$
-- Read the id of the agent of that name, if there is one.
SELECT agent_id
FROM han_solo.agents
WHERE name = :name;

-- name: insert_agent(name, agent_id)!
-- Remember the id of an agent; a name or an id that is there already is a unique violation.
INSERT INTO han_solo.agents (name, agent_id)
VALUES (:name, :agent_id);

-- name: replace_agent(name, agent_id)!
-- Give a name another agent, in place of one that is gone.
UPDATE han_solo.agents
SET
    agent_id = :agent_id,
    updated_at = now()
WHERE name = :name;

-- name: list_known_servers()
-- List the MCP servers that we registered.
SELECT server_id
FROM han_solo.mcp_servers;

-- name: insert_known_server(server_id, name, registered_at)!
-- Remember an MCP server as ours.
INSERT INTO han_solo.mcp_servers (server_id, name, registered_at)
VALUES (:server_id, :name, :registered_at)
ON CONFLICT (server_id) DO NOTHING;

-- name: list_known_blocks(agent_id)
-- List the blocks that the agent's labels were last seen as.
SELECT label, block_id
FROM han_solo.agent_blocks
WHERE agent_id = :agent_id;

-- name: upsert_known_block(agent_id, label, block_id, seen_at)!
-- Remember which block a label of the agent is.
INSERT INTO han_solo.agent_blocks (agent_id, label, block_id, seen_at)
VALUES (:agent_id, :label, :block_id, :seen_at)
ON CONFLICT (agent_id, label) DO UPDATE
SET
    block_id = excluded.block_id,
    seen_at = excluded.seen_at;

-- name: delete_known_block(agent_id, label, block_id)!
-- Forget a block that Letta says is gone.
DELETE FROM han_solo.agent_blocks
WHERE agent_id = :agent_id
    AND label = :label
    AND block_id = :block_id;
