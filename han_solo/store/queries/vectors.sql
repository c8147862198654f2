-- name: list_embedders()
-- List the models that made vectors, with how many each made.
SELECT
    embedders.id, embedders.provider, embedders.model, embedders.width, embedders.state,
    (
        SELECT count(vectors.chunk_id)
        FROM memory.vectors AS vectors
        WHERE vectors.embedder_id = embedders.id
    ) AS vectors
FROM memory.embedders AS embedders
ORDER BY embedders.id;

-- name: fetch_active()^
-- Read the model that is searched by.
SELECT id, provider, model, width
FROM memory.embedders
WHERE state = 'active';

-- name: insert_embedder(provider, model, width, state, at)^
-- Add a model, unless there is a row of it or another one is active already.
INSERT INTO memory.embedders (provider, model, width, state, created_at, activated_at)
VALUES (
    :provider, :model, :width, :state, :at,
    CASE WHEN :state = 'active' THEN :at::timestamptz END
)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: find_embedder(provider, model, width)^
-- Find the row of a model.
SELECT id, provider, model, width, state
FROM memory.embedders
WHERE provider = :provider AND model = :model AND width = :width;

-- name: set_filling(embedder_id)!
-- Begin to fill a model that was retired.
UPDATE memory.embedders
SET state = 'filling'
WHERE id = :embedder_id AND state = 'retired';

-- name: activate_embedder(embedder_id, at)!
-- Search by this model from now on; the one before is retired first.
UPDATE memory.embedders
SET state = 'active', activated_at = :at
WHERE id = :embedder_id;

-- name: retire_active(except_id)!
-- Retire the model that is searched by, unless it is this one.
UPDATE memory.embedders
SET state = 'retired'
WHERE state = 'active' AND id <> :except_id;

-- name: insert_vectors(embedder_id, chunk_ids, hashes, vectors)!
-- Keep vectors of chunks, unless the model is retired by now.
INSERT INTO memory.vectors (embedder_id, chunk_id, text_sha256, own)
SELECT embedders.id, given.chunk_id, given.text_sha256, given.vector::halfvec
FROM ROWS FROM (
    pg_catalog.unnest(:chunk_ids::bigint[]),
    pg_catalog.unnest(:hashes::bytea[]),
    pg_catalog.unnest(:vectors::text[])
) AS given (chunk_id, text_sha256, vector)
JOIN memory.embedders AS embedders
    ON embedders.id = :embedder_id AND embedders.state <> 'retired'
ON CONFLICT (embedder_id, chunk_id)
DO UPDATE SET
    text_sha256 = excluded.text_sha256,
    own = excluded.own,
    context = NULL;

-- name: refresh_vector_contexts(embedder_id, chunk_ids)!
-- Take anew the mean of the vectors of these chunks and their neighbours, one on each side.
WITH touched AS (
    SELECT DISTINCT near.id, given.thread
    FROM memory.chunks AS given
    CROSS JOIN LATERAL (
        (
            SELECT before.id
            FROM memory.chunks AS before
            WHERE before.thread = given.thread AND before.id <= given.id
            ORDER BY before.id DESC
            LIMIT 2
        )
        UNION ALL
        (
            SELECT after.id
            FROM memory.chunks AS after
            WHERE after.thread = given.thread AND after.id > given.id
            ORDER BY after.id
            LIMIT 1
        )
    ) AS near
    WHERE given.id = ANY (:chunk_ids::bigint[]) AND given.thread IS NOT NULL
),
means AS (
    SELECT touched.id, l2_normalize(avg(vectors.own)) AS context
    FROM touched
    CROSS JOIN LATERAL (
        (
            SELECT before.id
            FROM memory.chunks AS before
            WHERE before.thread = touched.thread AND before.id <= touched.id
            ORDER BY before.id DESC
            LIMIT 2
        )
        UNION ALL
        (
            SELECT after.id
            FROM memory.chunks AS after
            WHERE after.thread = touched.thread AND after.id > touched.id
            ORDER BY after.id
            LIMIT 1
        )
    ) AS near
    JOIN memory.vectors AS vectors
        ON vectors.embedder_id = :embedder_id AND vectors.chunk_id = near.id
    GROUP BY touched.id
)
UPDATE memory.vectors AS vectors
SET context = means.context
FROM means
WHERE vectors.embedder_id = :embedder_id AND vectors.chunk_id = means.id;

-- name: count_stale(embedder_id)^
-- Count the chunks, those without a vector of this model, and those whose text has changed since.
SELECT
    count(chunks.id) AS chunks,
    count(chunks.id) FILTER (WHERE vectors.chunk_id IS NULL) AS missing,
    count(chunks.id) FILTER (WHERE vectors.text_sha256 <> chunks.text_sha256) AS changed
FROM memory.chunks AS chunks
LEFT JOIN memory.vectors AS vectors
    ON vectors.embedder_id = :embedder_id AND vectors.chunk_id = chunks.id;

-- name: find_widths(embedder_id)
-- Find the widths that the stored vectors of a model really have.
SELECT vector_dims(own) AS width, count(chunk_id) AS vectors
FROM memory.vectors
WHERE embedder_id = :embedder_id AND own IS NOT NULL
GROUP BY vector_dims(own);

-- name: has_index(embedder_id)$
-- Say whether the index of a model's vectors is there and whole.
SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_index AS indexes
    JOIN pg_catalog.pg_class AS classes ON classes.oid = indexes.indexrelid
    JOIN pg_catalog.pg_namespace AS namespaces ON namespaces.oid = classes.relnamespace
    WHERE namespaces.nspname = 'memory'
        AND classes.relname = 'vectors_nearest_' || :embedder_id::smallint
        AND indexes.indisvalid
);

-- name: is_busy()$
-- Say whether an import or a switch of the model is under way, which leaves vectors for later.
SELECT EXISTS (
    SELECT
    FROM pg_catalog.pg_locks AS locks
    JOIN pg_catalog.pg_database AS databases ON databases.oid = locks.database
    WHERE databases.datname = current_database()
        AND locks.locktype = 'advisory'
        AND locks.objsubid = 1
        AND ((locks.classid::bigint << 32) | locks.objid::bigint) IN (
            hashtextextended('memory.embedders', 0), hashtextextended('memory.import', 0)
        )
);

-- name: list_stale(embedder_id, width, after_id, limit_rows)
-- List chunks without a vector of this model, or with one that is stale or of another width, by id.
SELECT
    chunks.id, chunks.text_sha256, chunks.thread, passages.author, passages.title,
    coalesce(notes.created_at, passages.happened_at) AS happened_at,
    substr(coalesce(notes.text, passages.text), chunks.first_char, chunks.chars) AS text
FROM memory.chunks AS chunks
JOIN memory.passages AS passages ON passages.id = chunks.passage_id
LEFT JOIN memory.passage_notes AS notes ON notes.id = chunks.note_id
LEFT JOIN memory.vectors AS vectors
    ON vectors.embedder_id = :embedder_id
    AND vectors.chunk_id = chunks.id
    /* Follows from the rest, and spares a merge the vectors before it. */
    AND vectors.chunk_id > :after_id
WHERE chunks.id > :after_id
    AND (
        vectors.chunk_id IS NULL
        OR vectors.text_sha256 <> chunks.text_sha256
        OR vector_dims(vectors.own) <> :width::integer
    )
ORDER BY chunks.id
LIMIT :limit_rows;

-- name: join_vectors(embedder_id, after_id)!
-- Take the mean of the neighbours' vectors of all chunks in the threads of those after this one.
WITH threads AS (
    SELECT DISTINCT thread
    FROM memory.chunks
    WHERE id > :after_id AND thread IS NOT NULL
),
means AS (
    SELECT
        chunks.id,
        avg(vectors.own) OVER (
            PARTITION BY chunks.thread
            ORDER BY chunks.id
            ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING
        ) AS mean
    FROM memory.chunks AS chunks
    JOIN threads ON threads.thread = chunks.thread
    JOIN memory.vectors AS vectors
        ON vectors.embedder_id = :embedder_id AND vectors.chunk_id = chunks.id
)
UPDATE memory.vectors AS vectors
SET context = l2_normalize(means.mean)
FROM means
WHERE vectors.embedder_id = :embedder_id AND vectors.chunk_id = means.id;

-- name: try_switch_lock()$
-- Be the one that switches the model, until the connection ends.
SELECT pg_try_advisory_lock(hashtextextended('memory.embedders', 0));
