-- name: list_links(passage_id)
-- List what a passage is linked with, in both directions, with the beginning of each text.
SELECT
    links.from_id, links.to_id, links.kind, links.note, links.principal, links.created_at,
    other.id AS passage_id, substr(other.text, 1, 300) AS beginning, other.author,
    other.archived_at IS NOT NULL AS is_archived
FROM memory.passage_links AS links
JOIN memory.passages AS other
    ON other.id = CASE WHEN links.from_id = :passage_id THEN links.to_id ELSE links.from_id END
WHERE links.from_id = :passage_id OR links.to_id = :passage_id
ORDER BY links.created_at, other.id;

-- name: insert_link(from_id, to_id, kind, note, principal, agent_id, at)$
-- Link two passages, unless they are so already; returns the first one's id.
INSERT INTO memory.passage_links (from_id, to_id, kind, note, principal, agent_id, created_at)
VALUES (:from_id, :to_id, :kind, :note, :principal, :agent_id, :at)
ON CONFLICT DO NOTHING
RETURNING from_id;

-- name: delete_links(from_id, to_id, kind)
-- Take the links between two passages away, of one kind or of any.
DELETE FROM memory.passage_links
WHERE ((from_id = :from_id AND to_id = :to_id) OR (from_id = :to_id AND to_id = :from_id))
    AND (:kind::text IS NULL OR kind = :kind)
RETURNING kind;

-- name: find_missing(passage_ids)
-- Return those of these ids that are no passage's.
SELECT given.id
FROM pg_catalog.unnest(:passage_ids::bigint[]) AS given (id)
WHERE NOT EXISTS (SELECT FROM memory.passages AS known WHERE known.id = given.id);

-- name: expand_links(search_id, passage_ids, include_archived, each_rows, limit_rows)
-- What the passages of a search are linked with, but for themselves; noted in the search's log.
WITH hits AS (
    SELECT id, place
    FROM pg_catalog.unnest(:passage_ids::bigint[]) WITH ORDINALITY AS given (id, place)
),
edges AS (
    SELECT hits.id AS via_id, hits.place, links.to_id AS other_id, links.kind, links.note,
        true AS is_to, links.created_at
    FROM hits
    JOIN memory.passage_links AS links ON links.from_id = hits.id
    UNION ALL
    SELECT hits.id, hits.place, links.from_id, links.kind, links.note, false, links.created_at
    FROM hits
    JOIN memory.passage_links AS links ON links.to_id = hits.id
),
/* Each once, by the best passage that leads to it. */
others AS (
    SELECT DISTINCT ON (edges.other_id)
        edges.via_id, edges.place, edges.other_id, edges.kind, edges.note, edges.is_to,
        edges.created_at
    FROM edges
    JOIN memory.passages AS other ON other.id = edges.other_id
    WHERE edges.other_id <> ALL (:passage_ids::bigint[])
        AND (:include_archived::boolean OR other.archived_at IS NULL)
    ORDER BY edges.other_id, edges.place, edges.created_at DESC, edges.kind
),
chosen AS MATERIALIZED (
    SELECT via_id, place, other_id, kind, note, is_to, number, linked_rows
    FROM (
        SELECT
            via_id, place, other_id, kind, note, is_to,
            row_number() OVER (
                PARTITION BY via_id ORDER BY created_at DESC, other_id
            ) AS number,
            count(*) OVER () AS linked_rows
        FROM others
    ) AS ranked
    WHERE number <= :each_rows
    ORDER BY place, number
    LIMIT :limit_rows
),
logged AS (
    UPDATE memory.searches
    SET linked_ids = (SELECT array_agg(other_id ORDER BY place, number) FROM chosen)
    WHERE id = :search_id AND EXISTS (SELECT FROM chosen)
)
SELECT
    chosen.via_id, chosen.kind, chosen.note AS link_note, chosen.is_to, chosen.linked_rows,
    passages.id AS passage_id, substr(passages.text, 1, 1200) AS beginning,
    char_length(passages.text) AS text_chars, passages.title, passages.author, passages.origin,
    passages.source, passages.scope, passages.tags, passages.tier, passages.happened_at,
    passages.principal
FROM chosen
JOIN memory.passages AS passages ON passages.id = chosen.other_id
ORDER BY chosen.place, chosen.number;
