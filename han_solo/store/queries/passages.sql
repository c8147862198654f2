-- name: prepare_write()$
-- Let few words wait to be put into their index, since every search looks through those.
SELECT set_config('gin_pending_list_limit', '256kB', true);

-- name: lock_thread(thread)$
-- Have writers of one thread take turns until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('memory.thread ' || :thread::text, 0));

-- name: insert_passages(texts, titles, authors, origins, sources, threads, scopes, tags, entities, tiers, importances, happened_at, import_keys, principal, agent_id, at)
-- Add passages, but for those imported before, in the order given.
WITH given AS (
    SELECT
        number, text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
        happened_at, import_key
    FROM ROWS FROM (
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
    ) WITH ORDINALITY AS rows (
        text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
        happened_at, import_key, number
    )
)
INSERT INTO memory.passages (
    text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
    happened_at, created_at, principal, agent_id, import_key
)
SELECT
    text, title, author, origin, source, thread, scope,
    /* Arrays of arrays can not be of different lengths, so each comes as JSON. */
    ARRAY(SELECT jsonb_array_elements_text(tags::jsonb)),
    ARRAY(SELECT jsonb_array_elements_text(entities::jsonb)),
    tier, importance, happened_at, :at, :principal, :agent_id, import_key
FROM given
ORDER BY number
ON CONFLICT (import_key) DO NOTHING
RETURNING
    id, text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
    happened_at, created_at, principal, agent_id, import_key, archived_at;

-- name: insert_chunks(passage_ids, note_ids, numbers, threads, first_chars, chars, asks, tells_time, hashes, authors, dates, titles, texts)
-- Add chunks with their words, and return their ids with what they are of.
INSERT INTO memory.chunks (
    passage_id, note_id, number, thread, first_char, chars, asks, tells_time, text_sha256, words
)
SELECT
    passage_id, note_id, number, thread, first_char, chars, asks, tells_time, text_sha256,
    setweight(to_tsvector('pg_catalog.english', author), 'A')
    || setweight(to_tsvector('pg_catalog.english', date), 'B')
    || setweight(to_tsvector('pg_catalog.english', title), 'C')
    || to_tsvector('pg_catalog.english', text)
FROM ROWS FROM (
    pg_catalog.unnest(:passage_ids::bigint[]),
    pg_catalog.unnest(:note_ids::bigint[]),
    pg_catalog.unnest(:numbers::integer[]),
    pg_catalog.unnest(:threads::text[]),
    pg_catalog.unnest(:first_chars::integer[]),
    pg_catalog.unnest(:chars::integer[]),
    pg_catalog.unnest(:asks::boolean[]),
    pg_catalog.unnest(:tells_time::boolean[]),
    pg_catalog.unnest(:hashes::bytea[]),
    pg_catalog.unnest(:authors::text[]),
    pg_catalog.unnest(:dates::text[]),
    pg_catalog.unnest(:titles::text[]),
    pg_catalog.unnest(:texts::text[])
) WITH ORDINALITY AS given (
    passage_id, note_id, number, thread, first_char, chars, asks, tells_time, text_sha256, author,
    date, title, text, place
)
ORDER BY place
RETURNING id;

-- name: refresh_contexts(chunk_ids)!
-- Join anew the words of these chunks and their neighbours, two on each side, and of theirs.
WITH touched AS (
    SELECT DISTINCT near.id, given.thread
    FROM memory.chunks AS given
    CROSS JOIN LATERAL (
        (
            SELECT before.id
            FROM memory.chunks AS before
            WHERE before.thread = given.thread AND before.id <= given.id
            ORDER BY before.id DESC
            LIMIT 3
        )
        UNION ALL
        (
            SELECT after.id
            FROM memory.chunks AS after
            WHERE after.thread = given.thread AND after.id > given.id
            ORDER BY after.id
            LIMIT 2
        )
    ) AS near
    WHERE given.id = ANY (:chunk_ids::bigint[]) AND given.thread IS NOT NULL
)
INSERT INTO memory.contexts (chunk_id, words)
SELECT touched.id, memory.join_words(near.words ORDER BY near.id)
FROM touched
CROSS JOIN LATERAL (
    (
        SELECT before.id, before.words
        FROM memory.chunks AS before
        WHERE before.thread = touched.thread AND before.id <= touched.id
        ORDER BY before.id DESC
        LIMIT 3
    )
    UNION ALL
    (
        SELECT after.id, after.words
        FROM memory.chunks AS after
        WHERE after.thread = touched.thread AND after.id > touched.id
        ORDER BY after.id
        LIMIT 2
    )
) AS near
GROUP BY touched.id
ON CONFLICT (chunk_id) DO UPDATE SET words = excluded.words;

-- name: fetch_passage(passage_id)^
-- Read a passage, archived or not, with how often it was found, read and used.
SELECT
    id, text, title, author, origin, source, thread, scope, tags, entities, tier, importance,
    happened_at, created_at, principal, agent_id, import_key, archived_at
FROM memory.passages
WHERE id = :passage_id;

-- name: list_made(since, until, max_chars, limit_rows)
-- List what was remembered in a stretch of time, oldest first; what was imported is not of that day.
SELECT created_at, coalesce(nullif(author, ''), principal) AS author, title,
    substr(text, 1, :max_chars) AS beginning, char_length(text) AS text_chars
FROM memory.passages
WHERE created_at >= :since AND created_at < :until AND import_key IS NULL AND archived_at IS NULL
ORDER BY id
LIMIT :limit_rows;

-- name: promote_passage(passage_id)$
-- Make a passage foundational for ever, unless it is archived; returns its id.
UPDATE memory.passages
SET tier = 'foundational'
WHERE id = :passage_id AND archived_at IS NULL
RETURNING id;

-- name: archive_passage(passage_id, principal, at)$
-- Hide a passage from search, unless it is foundational or hidden; returns its id.
WITH changed AS (
    UPDATE memory.passages
    SET archived_at = :at, archived_by = :principal
    WHERE id = :passage_id AND archived_at IS NULL AND tier = 'standard'
    RETURNING id
),
hidden AS (
    UPDATE memory.chunks
    SET is_hidden = true
    WHERE passage_id IN (SELECT id FROM changed)
)
SELECT id
FROM changed;

-- name: restore_passage(passage_id)$
-- Bring an archived passage back into search; returns its id.
WITH changed AS (
    UPDATE memory.passages
    SET archived_at = NULL, archived_by = NULL
    WHERE id = :passage_id AND archived_at IS NOT NULL
    RETURNING id
),
shown AS (
    UPDATE memory.chunks
    SET is_hidden = false
    WHERE passage_id IN (SELECT id FROM changed)
)
SELECT id
FROM changed;

-- name: lock_passage(passage_id)^
-- Read a passage's place in its thread and keep it as it is until the transaction ends.
SELECT id, title, author, tier, archived_at
FROM memory.passages
WHERE id = :passage_id
FOR UPDATE;

-- name: insert_note(passage_id, text, principal, agent_id, at)^
-- Add a dated note to a passage.
INSERT INTO memory.passage_notes (passage_id, text, principal, agent_id, created_at)
VALUES (:passage_id, :text, :principal, :agent_id, :at)
RETURNING id, passage_id, text, principal, agent_id, created_at;

-- name: list_notes(passage_id)
-- List the notes on a passage, oldest first.
SELECT id, passage_id, text, principal, agent_id, created_at
FROM memory.passage_notes
WHERE passage_id = :passage_id
ORDER BY id;

-- name: fetch_counting()^
-- Tell how many chunks were counted, and how many were added since, about.
SELECT
    coalesce((SELECT chunks FROM memory.word_totals), 0) AS counted,
    coalesce((SELECT max(id) FROM memory.chunks), 0)
    - coalesce((SELECT last_chunk_id FROM memory.word_totals), 0) AS added;

-- name: try_counting_lock()$
-- Be the one that counts words, until the transaction ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('memory.word_counts', 0));

-- name: count_words()!
-- Count in how many chunks each word occurs.
WITH counted AS MATERIALIZED (
    SELECT word, ndoc
    FROM pg_catalog.ts_stat('SELECT words FROM memory.chunks')
),
gone AS (
    DELETE FROM memory.word_counts
    WHERE word NOT IN (SELECT word FROM counted)
)
INSERT INTO memory.word_counts (word, chunks)
SELECT word, ndoc
FROM counted
ON CONFLICT (word) DO UPDATE SET chunks = excluded.chunks
WHERE word_counts.chunks <> excluded.chunks;

-- name: count_totals(at)!
-- Count the chunks, and how many words they have on average, alone and in context.
INSERT INTO memory.word_totals (chunks, last_chunk_id, mean_own, mean_context, counted_at)
SELECT
    count(chunks.id), coalesce(max(chunks.id), 0),
    coalesce(avg(length(chunks.words)), 1),
    coalesce(avg(length(coalesce(contexts.words, chunks.words))), 1),
    :at
FROM memory.chunks AS chunks
LEFT JOIN memory.contexts AS contexts ON contexts.chunk_id = chunks.id
ON CONFLICT (is_only) DO UPDATE SET
    chunks = excluded.chunks,
    last_chunk_id = excluded.last_chunk_id,
    mean_own = excluded.mean_own,
    mean_context = excluded.mean_context,
    counted_at = excluded.counted_at;
