-- name: prepare_search()^
-- Set what the search below wants, until the transaction ends.
SELECT
    set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('hnsw.ef_search', '48', true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    /* By default a filtered scan gives up after 20,000. */
    set_config('hnsw.max_scan_tuples', '500000', true),
    /* The log of searches may miss the last half second before the database's machine dies. */
    set_config('synchronous_commit', 'off', true);

-- name: search_passages(queries, vectors, wants_time, weights, least_near, limit_rows, include_archived, is_filtered, scopes, tags, entities, authors, origins, tier, thread, happened_from, happened_to, principal, agent_id, filters, mode, reason, at)
-- Search by words and by vectors, alone and in context; rank, log, and return the hits.
WITH asked AS MATERIALIZED (
    SELECT
        given.number::integer AS number,
        given.vector::halfvec(/*width*/256) AS vector,
        given.wants_time,
        tsvector_to_array(to_tsvector('pg_catalog.english', given.text)) AS words
    FROM ROWS FROM (
        pg_catalog.unnest(:queries::text[]),
        pg_catalog.unnest(:vectors::text[]),
        pg_catalog.unnest(:wants_time::boolean[])
    ) WITH ORDINALITY AS given (text, vector, wants_time, number)
),
totals AS MATERIALIZED (
    SELECT
        coalesce(max(chunks), 1) AS chunks,
        coalesce(max(mean_own), 1) AS mean_own,
        coalesce(max(mean_context), 1) AS mean_context
    FROM memory.word_totals
),
counted AS MATERIALIZED (
    SELECT
        asked.number, word,
        /* As a query of this one word, whatever characters it has. */
        '''' || replace(replace(word, '\', '\\'), '''', '''''') || '''' AS quoted,
        coalesce(counts.chunks, 1) AS chunks,
        ln(
            1 + (greatest(totals.chunks - coalesce(counts.chunks, 1), 0) + 0.5)
            / (coalesce(counts.chunks, 1) + 0.5)
        ) AS weight,
        row_number() OVER rarest AS place,
        sum(coalesce(counts.chunks, 1)) OVER rarest AS chunks_so_far
    FROM asked
    CROSS JOIN LATERAL pg_catalog.unnest(asked.words) AS word
    CROSS JOIN totals
    LEFT JOIN memory.word_counts AS counts USING (word)
    WINDOW rarest AS (PARTITION BY asked.number ORDER BY coalesce(counts.chunks, 1), word)
),
/* The rarest words only of a very long query. */
terms AS MATERIALIZED (
    SELECT number, word, weight, place, chunks_so_far, quoted::tsquery AS query, quoted
    FROM counted
    WHERE place <= 32
),
authors_asked AS MATERIALIZED (
    SELECT number, string_agg(quoted || ':A', ' | ')::tsquery AS query
    FROM terms
    GROUP BY number
),
/* Few enough to be looked at one by one, which no index for vectors does as well. */
allowed AS MATERIALIZED (
    SELECT id
    FROM memory.passages
    WHERE :is_filtered
        AND (:scopes::text[] IS NULL OR scope = ANY (:scopes))
        AND (:tags::text[] IS NULL OR tags @> :tags)
        AND (:entities::text[] IS NULL OR entities && :entities)
        AND (:authors::text[] IS NULL OR lower(author) = ANY (:authors))
        AND (:origins::text[] IS NULL OR origin = ANY (:origins))
        AND (:tier::text IS NULL OR tier = :tier)
        AND (:thread::text IS NULL OR thread = :thread)
        AND (:happened_from::timestamptz IS NULL OR happened_at >= :happened_from)
        AND (:happened_to::timestamptz IS NULL OR happened_at < :happened_to)
        AND (:include_archived OR archived_at IS NULL)
    LIMIT 3001
),
size AS MATERIALIZED (
    SELECT :is_filtered AND count(id) <= 3000 AS is_small
    FROM allowed
),
/* Words that are in very many chunks find nothing; they count in the ranking all the same. */
worded AS MATERIALIZED (
    SELECT
        asked.number, ranked.id AS chunk_id, ranked.weight,
        row_number() OVER (
            PARTITION BY asked.number, ranked.passage_id
            ORDER BY ranked.weight DESC, ranked.id DESC
        ) AS of_passage
    FROM asked
    CROSS JOIN LATERAL (
        SELECT found.id, found.passage_id, sum(terms.weight) AS weight
        FROM terms
        CROSS JOIN LATERAL (
            SELECT chunks.id, chunks.passage_id
            FROM memory.chunks AS chunks
            WHERE chunks.words @@ terms.query
                AND (:include_archived OR NOT chunks.is_hidden)
                AND (
                    NOT :is_filtered
                    OR (
                        (SELECT is_small FROM size)
                        AND chunks.passage_id IN (SELECT id FROM allowed)
                    )
                    OR (
                        NOT (SELECT is_small FROM size)
                        AND EXISTS (
                            SELECT
                            FROM memory.passages AS passages
                            WHERE passages.id = chunks.passage_id
                                AND (:scopes::text[] IS NULL OR scope = ANY (:scopes))
                                AND (:tags::text[] IS NULL OR tags @> :tags)
                                AND (:entities::text[] IS NULL OR entities && :entities)
                                AND (:authors::text[] IS NULL OR lower(author) = ANY (:authors))
                                AND (:origins::text[] IS NULL OR origin = ANY (:origins))
                                AND (:tier::text IS NULL OR tier = :tier)
                                AND (:thread::text IS NULL OR passages.thread = :thread)
                                AND (
                                    :happened_from::timestamptz IS NULL
                                    OR happened_at >= :happened_from
                                )
                                AND (
                                    :happened_to::timestamptz IS NULL OR happened_at < :happened_to
                                )
                        )
                    )
                )
        ) AS found
        WHERE terms.number = asked.number
            AND (terms.place = 1 OR terms.chunks_so_far <= 8000)
        GROUP BY found.id, found.passage_id
        ORDER BY weight DESC, found.id DESC
        LIMIT 120
    ) AS ranked
),
/* A few of each passage, so that a long one does not leave the others out. */
by_words AS MATERIALIZED (
    SELECT number, chunk_id, place
    FROM (
        SELECT
            number, chunk_id,
            row_number() OVER (PARTITION BY number ORDER BY weight DESC, chunk_id DESC) AS place
        FROM worded
        WHERE of_passage <= 6
    ) AS few
    WHERE place <= 56
),
by_vectors AS MATERIALIZED (
    SELECT asked.number, found.chunk_id
    FROM asked
    CROSS JOIN LATERAL (
        SELECT vectors.chunk_id
        FROM memory.vectors AS vectors
        JOIN memory.chunks AS chunks ON chunks.id = vectors.chunk_id
        WHERE vectors.embedder_id = /*embedder*/1
            AND (:include_archived OR NOT chunks.is_hidden)
            AND (
                NOT :is_filtered
                OR EXISTS (
                    SELECT
                    FROM memory.passages AS passages
                    WHERE passages.id = chunks.passage_id
                        AND (:scopes::text[] IS NULL OR scope = ANY (:scopes))
                        AND (:tags::text[] IS NULL OR tags @> :tags)
                        AND (:entities::text[] IS NULL OR entities && :entities)
                        AND (:authors::text[] IS NULL OR lower(author) = ANY (:authors))
                        AND (:origins::text[] IS NULL OR origin = ANY (:origins))
                        AND (:tier::text IS NULL OR tier = :tier)
                        AND (:thread::text IS NULL OR passages.thread = :thread)
                        AND (:happened_from::timestamptz IS NULL OR happened_at >= :happened_from)
                        AND (:happened_to::timestamptz IS NULL OR happened_at < :happened_to)
                )
            )
        ORDER BY vectors.own::halfvec(/*width*/256) <=> asked.vector
        LIMIT 40
    ) AS found
    WHERE asked.vector IS NOT NULL AND NOT (SELECT is_small FROM size)
    UNION ALL
    SELECT asked.number, found.chunk_id
    FROM asked
    CROSS JOIN LATERAL (
        SELECT vectors.chunk_id
        FROM allowed
        JOIN memory.chunks AS chunks ON chunks.passage_id = allowed.id
        JOIN memory.vectors AS vectors
            ON vectors.chunk_id = chunks.id AND vectors.embedder_id = /*embedder*/1
        WHERE vectors.own IS NOT NULL
        ORDER BY vectors.own <=> asked.vector
        LIMIT 40
    ) AS found
    WHERE asked.vector IS NOT NULL AND (SELECT is_small FROM size)
),
/* What stands beside a good hit may be the answer to it. */
beside AS MATERIALIZED (
    SELECT by_words.number, near.id AS chunk_id
    FROM by_words
    JOIN memory.chunks AS chunks ON chunks.id = by_words.chunk_id
    CROSS JOIN LATERAL (
        (
            SELECT before.id, before.passage_id, before.is_hidden
            FROM memory.chunks AS before
            WHERE before.thread = chunks.thread AND before.id < chunks.id
            ORDER BY before.id DESC
            LIMIT 1
        )
        UNION ALL
        (
            SELECT after.id, after.passage_id, after.is_hidden
            FROM memory.chunks AS after
            WHERE after.thread = chunks.thread AND after.id > chunks.id
            ORDER BY after.id
            LIMIT 2
        )
    ) AS near
    WHERE by_words.place <= 12
        AND (:include_archived OR NOT near.is_hidden)
        AND (
            NOT :is_filtered
            OR ((SELECT is_small FROM size) AND near.passage_id IN (SELECT id FROM allowed))
        )
),
candidates AS MATERIALIZED (
    SELECT number, chunk_id
    FROM by_words
    UNION
    SELECT number, chunk_id
    FROM by_vectors
    UNION
    SELECT number, chunk_id
    FROM beside
),
scored AS MATERIALIZED (
    SELECT
        candidates.number, chunks.id, chunks.passage_id, chunks.asks,
        asked.wants_time AND chunks.tells_time AS tells_time,
        coalesce(chunks.words @@ authors_asked.query, false) AS is_by,
        coalesce(words.own, 0) AS own,
        coalesce(words.context, 0) AS context,
        /* What points the other way is not near; it must not turn the scale round either. */
        greatest(coalesce(1 - (vectors.own <=> asked.vector), 0), 0) AS near,
        greatest(
            coalesce(1 - (coalesce(vectors.context, vectors.own) <=> asked.vector), 0), 0
        ) AS near_context
    FROM candidates
    JOIN asked ON asked.number = candidates.number
    JOIN memory.chunks AS chunks ON chunks.id = candidates.chunk_id
    CROSS JOIN totals
    LEFT JOIN authors_asked ON authors_asked.number = candidates.number
    LEFT JOIN memory.contexts AS contexts ON contexts.chunk_id = chunks.id
    LEFT JOIN memory.vectors AS vectors
        ON vectors.embedder_id = /*embedder*/1 AND vectors.chunk_id = chunks.id
    LEFT JOIN LATERAL (
        SELECT
            sum(
                ranks.weight
                * memory.saturate(ranks.own, length(chunks.words), totals.mean_own)
            ) AS own,
            sum(
                ranks.weight
                * memory.saturate(
                    ranks.context,
                    length(coalesce(contexts.words, chunks.words)),
                    totals.mean_context
                )
            ) AS context
        FROM (
            SELECT
                terms.weight,
                /* Whether a word is there is told sooner than how often. */
                CASE
                    WHEN chunks.words @@ terms.query
                        THEN ts_rank(ARRAY[1, 1, 1, 1]::real[], chunks.words, terms.query)
                    ELSE 0
                END AS own,
                CASE
                    WHEN coalesce(contexts.words, chunks.words) @@ terms.query
                        THEN
                            ts_rank(
                                ARRAY[1, 1, 1, 1]::real[],
                                coalesce(contexts.words, chunks.words),
                                terms.query
                            )
                    ELSE 0
                END AS context
            FROM terms
            WHERE terms.number = candidates.number
            OFFSET 0
        ) AS ranks
    ) AS words ON true
),
weighed AS MATERIALIZED (
    SELECT
        number, id, passage_id, near, is_by, tells_time,
        context,
        (
            (:weights::double precision[])[1] * own / greatest(max(own) OVER asking, 0.000001)
            + (:weights::double precision[])[2]
            * context / greatest(max(context) OVER asking, 0.000001)
            + (:weights::double precision[])[3]
            * near / greatest(max(near) OVER asking, 0.000001)
            + (:weights::double precision[])[4]
            * near_context / greatest(max(near_context) OVER asking, 0.000001)
            + (:weights::double precision[])[5] * is_by::integer
            + (:weights::double precision[])[6] * asks::integer
            + (:weights::double precision[])[7] * tells_time::integer
        ) AS score
    FROM scored
    WHERE own > 0 OR context > 0 OR near >= :least_near
    WINDOW asking AS (PARTITION BY number)
),
/* The best chunk of each passage, for each query. */
best AS MATERIALIZED (
    SELECT DISTINCT ON (number, passage_id)
        number, passage_id, id, near, is_by, tells_time, context, score
    FROM weighed
    ORDER BY number, passage_id, score DESC, id
),
/* Led by its best query; what the others say of it counts a little. */
fused AS MATERIALIZED (
    SELECT
        passage_id, id, number, near, is_by, tells_time, context, found_by,
        score + 0.2 * (total - score) / greatest(cardinality(found_by) - 1, 1) AS score
    FROM (
        SELECT DISTINCT ON (passage_id)
            passage_id, id, number, near, is_by, tells_time, context, score,
            sum(score) OVER same AS total,
            array_agg(number) OVER same AS found_by
        FROM best
        WINDOW same AS (
            PARTITION BY passage_id
            ORDER BY score DESC, number
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
        ORDER BY passage_id, best.score DESC, number
    ) AS led
    ORDER BY score DESC, passage_id
    LIMIT :limit_rows
),
logged AS (
    INSERT INTO memory.searches (
        at, principal, agent_id, queries, filters, mode, reason, passage_ids
    )
    SELECT
        :at, :principal, :agent_id, :queries, :filters, :mode, :reason,
        coalesce(
            (SELECT array_agg(passage_id ORDER BY score DESC, passage_id) FROM fused), ARRAY[]::bigint[]
        )
    RETURNING id
)
SELECT
    logged.id AS search_id,
    ARRAY(
        SELECT asked.number FROM asked WHERE cardinality(asked.words) = 0 ORDER BY asked.number
    ) AS wordless,
    fused.passage_id, fused.score, fused.found_by,
    fused.near, fused.context, fused.is_by AND chunks.note_id IS NULL AS is_by, fused.tells_time,
    ARRAY(
        SELECT terms.word
        FROM terms
        WHERE terms.number = fused.number AND chunks.words @@ terms.query
        ORDER BY terms.weight DESC
    ) AS matched,
    EXISTS (
        SELECT FROM memory.passage_links AS links WHERE links.from_id = fused.passage_id
    )
    OR EXISTS (
        SELECT FROM memory.passage_links AS links WHERE links.to_id = fused.passage_id
    ) AS is_linked,
    chunks.number AS chunk, chunks.note_id IS NOT NULL AS is_note,
    (
        SELECT count(others.id)
        FROM memory.chunks AS others
        WHERE others.passage_id = fused.passage_id AND others.note_id IS NULL
    ) AS chunks,
    substr(coalesce(notes.text, passages.text), chunks.first_char, chunks.chars) AS text,
    /* A note is its writer's, of its own day, whoever the passage is by. */
    coalesce(notes.principal, passages.author) AS author,
    CASE WHEN notes.id IS NULL THEN passages.origin ELSE 'inferred' END AS origin,
    coalesce(notes.created_at, passages.happened_at) AS happened_at,
    coalesce(notes.principal, passages.principal) AS principal,
    passages.title, passages.source, passages.thread,
    passages.scope, passages.tags, passages.tier, passages.importance, passages.archived_at
FROM logged
LEFT JOIN fused ON true
LEFT JOIN memory.chunks AS chunks ON chunks.id = fused.id
LEFT JOIN memory.passages AS passages ON passages.id = fused.passage_id
LEFT JOIN memory.passage_notes AS notes ON notes.id = chunks.note_id
ORDER BY fused.score DESC, fused.passage_id;
