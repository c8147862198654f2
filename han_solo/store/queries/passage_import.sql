-- name: prepare_import()$
-- Let many words wait to be put into their index, which is faster; they are settled at the end.
SELECT set_config('gin_pending_list_limit', '64MB', true);

-- name: import_passages(numbers, texts, titles, authors, origins, sources, threads, scopes, tags, entities, tiers, importances, happened_at, import_keys, chunk_numbers, orders, first_chars, chars, asks, tells_time, hashes, dates, principal, agent_id, at)
-- Add passages with their chunks, but for those imported before, and return the new ones.
WITH given AS MATERIALIZED (
    SELECT
        nextval(pg_get_serial_sequence('memory.passages', 'id')) AS id,
        number, text, title, author, origin, source, thread, scope, tags::text[] AS tags,
        entities::text[] AS entities, tier, importance, happened_at, import_key
    FROM ROWS FROM (
        pg_catalog.unnest(:numbers::integer[]),
        pg_catalog.unnest(:texts::text[]),
        pg_catalog.unnest(:titles::text[]),
        pg_catalog.unnest(:authors::text[]),
        pg_catalog.unnest(:origins::text[]),
        pg_catalog.unnest(:sources::text[]),
        pg_catalog.unnest(:threads::text[]),
        pg_catalog.unnest(:scopes::text[]),
        pg_catalog.unnest(:tags::text[]),
        pg_catalog.unnest(:entities::text[]),
        pg_catalog.unnest(:tiers::text[]),
        pg_catalog.unnest(:importances::real[]),
        pg_catalog.unnest(:happened_at::timestamptz[]),
        pg_catalog.unnest(:import_keys::text[])
    ) AS rows (
        number, text, title, author, origin, source, thread, scope, tags, entities, tier,
        importance, happened_at, import_key
    )
),
added AS (
    INSERT INTO memory.passages (
        id, text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
        happened_at, created_at, principal, agent_id, import_key
    )
    OVERRIDING SYSTEM VALUE
    SELECT
        id, text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
        happened_at, :at, :principal, :agent_id, import_key
    FROM given
    ORDER BY number
    ON CONFLICT (import_key) DO NOTHING
    RETURNING id
),
chunks AS (
    INSERT INTO memory.chunks (
        passage_id, number, thread, first_char, chars, asks, tells_time, text_sha256, words
    )
    SELECT
        given.id, pieces.number,
        CASE
            WHEN given.thread IS NOT NULL THEN 'thread ' || given.thread
            WHEN pieces.count > 1 THEN 'passage ' || given.id
        END,
        pieces.first_char, pieces.chars, pieces.asks, pieces.tells_time, pieces.text_sha256,
        setweight(to_tsvector('pg_catalog.english', given.author), 'A')
        || setweight(to_tsvector('pg_catalog.english', pieces.date), 'B')
        || setweight(
            to_tsvector(
                'pg_catalog.english', given.title || ' ' || array_to_string(given.tags, ' ')
            ),
            'C'
        )
        || to_tsvector(
            'pg_catalog.english', substr(given.text, pieces.first_char, pieces.chars)
        )
    FROM (
        SELECT
            number, of_number, first_char, chars, asks, tells_time, text_sha256, date,
            count(of_number) OVER (PARTITION BY of_number) AS count
        FROM ROWS FROM (
            pg_catalog.unnest(:chunk_numbers::integer[]),
            pg_catalog.unnest(:orders::integer[]),
            pg_catalog.unnest(:first_chars::integer[]),
            pg_catalog.unnest(:chars::integer[]),
            pg_catalog.unnest(:asks::boolean[]),
            pg_catalog.unnest(:tells_time::boolean[]),
            pg_catalog.unnest(:hashes::bytea[]),
            pg_catalog.unnest(:dates::text[])
        ) AS rows (number, of_number, first_char, chars, asks, tells_time, text_sha256, date)
    ) AS pieces
    JOIN given ON given.number = pieces.of_number
    JOIN added ON added.id = given.id
    ORDER BY pieces.of_number, pieces.number
    RETURNING id
)
SELECT given.number, given.id
FROM given
JOIN added ON added.id = given.id;

-- name: settle_imported(ids, principals, agent_ids, created_at)!
-- Say who wrote passages that were just imported, and when, as the other memory had it.
UPDATE memory.passages
SET principal = given.principal, agent_id = given.agent_id, created_at = given.created_at
FROM ROWS FROM (
    pg_catalog.unnest(:ids::bigint[]),
    pg_catalog.unnest(:principals::text[]),
    pg_catalog.unnest(:agent_ids::text[]),
    pg_catalog.unnest(:created_at::timestamptz[])
) AS given (id, principal, agent_id, created_at)
WHERE passages.id = given.id;

-- name: insert_notes(passage_ids, texts, principals, agent_ids, created_at)
-- Add the notes of passages that were just imported, and return their ids in order.
WITH given AS (
    SELECT
        nextval(pg_get_serial_sequence('memory.passage_notes', 'id')) AS id,
        passage_id, text, principal, agent_id, created_at, place
    FROM ROWS FROM (
        pg_catalog.unnest(:passage_ids::bigint[]),
        pg_catalog.unnest(:texts::text[]),
        pg_catalog.unnest(:principals::text[]),
        pg_catalog.unnest(:agent_ids::text[]),
        pg_catalog.unnest(:created_at::timestamptz[])
    ) WITH ORDINALITY AS rows (passage_id, text, principal, agent_id, created_at, place)
    ORDER BY place
),
added AS (
    INSERT INTO memory.passage_notes (id, passage_id, text, principal, agent_id, created_at)
    OVERRIDING SYSTEM VALUE
    SELECT id, passage_id, text, principal, agent_id, created_at
    FROM given
)
SELECT id
FROM given
ORDER BY place;

-- name: archive_imported(ids, principals, archived_at)!
-- Put away passages that were just imported and were so in the other memory.
WITH changed AS (
    UPDATE memory.passages
    SET archived_at = given.archived_at, archived_by = given.principal
    FROM ROWS FROM (
        pg_catalog.unnest(:ids::bigint[]),
        pg_catalog.unnest(:principals::text[]),
        pg_catalog.unnest(:archived_at::timestamptz[])
    ) AS given (id, principal, archived_at)
    WHERE passages.id = given.id
    RETURNING passages.id
)
UPDATE memory.chunks
SET is_hidden = true
WHERE passage_id IN (SELECT id FROM changed);

-- name: hold_import()$
-- Show others, until the connection ends, that an import is under way; it stops nobody.
SELECT pg_advisory_lock_shared(hashtextextended('memory.import', 0));

-- name: last_chunk()$
-- Return the id of the newest chunk.
SELECT coalesce(max(id), 0)
FROM memory.chunks;

-- name: join_contexts(after_id)!
-- Join the words of the neighbours of all chunks in the threads of those after this one.
WITH threads AS (
    SELECT DISTINCT thread
    FROM memory.chunks
    WHERE id > :after_id AND thread IS NOT NULL
)
INSERT INTO memory.contexts (chunk_id, words)
SELECT
    chunks.id,
    memory.join_words(chunks.words) OVER (
        PARTITION BY chunks.thread
        ORDER BY chunks.id
        ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING
    )
FROM memory.chunks AS chunks
JOIN threads ON threads.thread = chunks.thread
ON CONFLICT (chunk_id) DO UPDATE SET words = excluded.words;

-- name: settle_words()$
-- Put the words that wait into the index, so that no search has to look through them.
SELECT pg_catalog.gin_clean_pending_list('memory.chunks_by_words'::regclass);
