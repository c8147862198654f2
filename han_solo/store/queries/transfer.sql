-- name: list_passages(after_id, scopes, limit_rows)
-- List passages by id, each with the key that names it in any memory.
SELECT
    id, text, title, author, origin, source, thread, scope, tags, tier, importance,
    happened_at, created_at, principal, agent_id, archived_at, archived_by,
    coalesce(
        import_key,
        'passage-' || id || '-' || to_char(created_at AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSUS')
        || '-' || substr(encode(sha256(convert_to(text, 'UTF8')), 'hex'), 1, 12)
    ) AS key
FROM memory.passages
WHERE id > :after_id AND (:scopes::text[] IS NULL OR scope = ANY (:scopes))
ORDER BY id
LIMIT :limit_rows;

-- name: list_notes_on(passage_ids)
-- List the notes on these passages, oldest first.
SELECT passage_id, text, principal, agent_id, created_at
FROM memory.passage_notes
WHERE passage_id = ANY (:passage_ids)
ORDER BY passage_id, id;

-- name: list_links_from(passage_ids)
-- List the links that lead from these passages, each with the key of where it leads.
SELECT
    links.from_id, links.kind, links.note, links.principal, links.agent_id, links.created_at,
    coalesce(
        other.import_key,
        'passage-' || other.id || '-'
        || to_char(other.created_at AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSUS')
        || '-' || substr(encode(sha256(convert_to(other.text, 'UTF8')), 'hex'), 1, 12)
    ) AS to_key
FROM memory.passage_links AS links
JOIN memory.passages AS other ON other.id = links.to_id
WHERE links.from_id = ANY (:passage_ids)
ORDER BY links.from_id, links.created_at, links.to_id, links.kind;

-- name: find_keys(keys, ids)
-- Return those of these keys that name a passage of this memory: one imported, or one of its own.
SELECT given.key, passages.id
FROM ROWS FROM (
    pg_catalog.unnest(:keys::text[]),
    pg_catalog.unnest(:ids::bigint[])
) AS given (key, id)
JOIN memory.passages AS passages ON passages.import_key = given.key
UNION ALL
SELECT given.key, passages.id
FROM ROWS FROM (
    pg_catalog.unnest(:keys::text[]),
    pg_catalog.unnest(:ids::bigint[])
) AS given (key, id)
JOIN memory.passages AS passages ON passages.id = given.id
WHERE passages.import_key IS NULL
    AND given.key = 'passage-' || passages.id || '-'
        || to_char(passages.created_at AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSUS')
        || '-' || substr(encode(sha256(convert_to(passages.text, 'UTF8')), 'hex'), 1, 12);

-- name: insert_links(from_ids, to_ids, kinds, notes, principals, agent_ids, created_at)
-- Link passages, but for those that are linked so already; returns the new links.
INSERT INTO memory.passage_links (from_id, to_id, kind, note, principal, agent_id, created_at)
SELECT from_id, to_id, kind, note, principal, agent_id, created_at
FROM ROWS FROM (
    pg_catalog.unnest(:from_ids::bigint[]),
    pg_catalog.unnest(:to_ids::bigint[]),
    pg_catalog.unnest(:kinds::text[]),
    pg_catalog.unnest(:notes::text[]),
    pg_catalog.unnest(:principals::text[]),
    pg_catalog.unnest(:agent_ids::text[]),
    pg_catalog.unnest(:created_at::timestamptz[])
) AS given (from_id, to_id, kind, note, principal, agent_id, created_at)
ON CONFLICT DO NOTHING
RETURNING from_id;

-- name: count_passages(scopes)$
-- Count the passages, archived ones too.
SELECT count(id)
FROM memory.passages
WHERE :scopes::text[] IS NULL OR scope = ANY (:scopes);
