-- name: fetch_access(passage_id)^
-- Count how often a passage was shown by a search or read, and when last.
SELECT count(at) AS access_count, max(at) AS accessed_at
FROM (
    SELECT at
    FROM memory.searches
    WHERE passage_ids @> ARRAY[:passage_id::bigint]
    UNION ALL
    SELECT at
    FROM memory.searches
    WHERE cardinality(linked_ids) > 0 AND linked_ids @> ARRAY[:passage_id::bigint]
    UNION ALL
    SELECT at
    FROM memory.passage_uses
    WHERE passage_id = :passage_id AND kind = 'read'
) AS accesses;

-- name: insert_read(passage_id, principal, agent_id, at)!
-- Note that a passage was read whole.
INSERT INTO memory.passage_uses (passage_id, kind, principal, agent_id, at)
VALUES (:passage_id, 'read', :principal, :agent_id, :at);

-- name: fetch_search(search_id)^
-- Read what a search was asked and what it showed.
SELECT id, at, principal, agent_id, queries, passage_ids, linked_ids
FROM memory.searches
WHERE id = :search_id;

-- name: trim_search(search_id, passage_ids, linked_ids)!
-- Keep in the log of a search what its reply had room for.
UPDATE memory.searches
SET passage_ids = :passage_ids, linked_ids = :linked_ids
WHERE id = :search_id;

-- name: put_verdicts(search_id, used_ids, note, principal, agent_id, at)!
-- Say of every passage that a search showed whether it was of use; a later word replaces this one.
INSERT INTO memory.passage_uses (search_id, passage_id, kind, note, principal, agent_id, at)
SELECT
    searches.id, shown.id,
    CASE WHEN shown.id = ANY (:used_ids::bigint[]) THEN 'used' ELSE 'not_used' END,
    :note, :principal, :agent_id, :at
FROM memory.searches AS searches
CROSS JOIN LATERAL (
    SELECT DISTINCT given.id
    FROM pg_catalog.unnest(searches.passage_ids || searches.linked_ids) AS given (id)
) AS shown
WHERE searches.id = :search_id
ON CONFLICT (search_id, passage_id) WHERE kind <> 'read' DO UPDATE SET
    kind = excluded.kind,
    note = excluded.note,
    principal = excluded.principal,
    agent_id = excluded.agent_id,
    at = excluded.at;
