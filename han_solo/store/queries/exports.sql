-- name: export_block_versions()
-- Every version of every core block, the whole text in each.
SELECT to_jsonb(v)::text AS line
FROM memory.agent_core_block_versions AS v
ORDER BY v.block_id, v.number;

-- name: export_notecards()
-- Every notecard, whatever its status.
SELECT to_jsonb(n)::text AS line
FROM memory.notecards AS n
ORDER BY n.id;

-- name: export_agents()
-- The agents that are known, by the names of their specs.
SELECT to_jsonb(a)::text AS line
FROM han_solo.agents AS a
ORDER BY a.name;

-- name: list_blocks()
-- The newest version of each block, for a file that people can read.
SELECT DISTINCT ON (v.block_id) v.block_id, v.label, v.number, v.value
FROM memory.agent_core_block_versions AS v
ORDER BY v.block_id, v.number DESC;
