-- name: look_through(since, until, zone, examples)^
-- What of the memory was shown, read and used since then, and which searches found nothing.
WITH searches AS MATERIALIZED (
    SELECT
        id, at, queries, filters, mode, passage_ids, linked_ids,
        EXISTS (
            SELECT FROM memory.passage_uses AS uses
            WHERE uses.search_id = searches.id AND uses.kind <> 'read'
        ) AS is_judged,
        EXISTS (
            SELECT FROM memory.passage_uses AS uses
            WHERE uses.search_id = searches.id AND uses.kind = 'used'
        ) AS was_of_use
    FROM memory.searches AS searches
    WHERE at >= :since AND at <= :until
),
found AS MATERIALIZED (
    SELECT given.id, count(*) AS times, max(searches.at) AS last_at
    FROM searches
    CROSS JOIN LATERAL pg_catalog.unnest(searches.passage_ids) AS given (id)
    GROUP BY given.id
),
uses AS MATERIALIZED (
    SELECT
        passage_id AS id,
        count(*) FILTER (WHERE kind = 'read') AS reads,
        count(*) FILTER (WHERE kind = 'used') AS used,
        count(*) FILTER (WHERE kind = 'not_used') AS not_used
    FROM memory.passage_uses
    WHERE at >= :since AND at <= :until
    GROUP BY passage_id
),
linked AS MATERIALIZED (
    SELECT DISTINCT given.id
    FROM searches
    CROSS JOIN LATERAL pg_catalog.unnest(searches.linked_ids) AS given (id)
),
seen AS MATERIALIZED (
    SELECT
        passages.id, passages.tier, passages.scope, passages.importance, passages.created_at,
        coalesce(found.times, 0) AS times, found.last_at,
        coalesce(uses.reads, 0) AS reads,
        coalesce(uses.used, 0) AS used,
        coalesce(uses.not_used, 0) AS not_used,
        found.id IS NULL AND uses.id IS NULL AND linked.id IS NULL AS is_dead
    FROM memory.passages AS passages
    LEFT JOIN found ON found.id = passages.id
    LEFT JOIN uses ON uses.id = passages.id
    LEFT JOIN linked ON linked.id = passages.id
    WHERE passages.archived_at IS NULL
),
asked AS MATERIALIZED (
    SELECT
        substr(array_to_string(queries, ' | '), 1, 300) AS question,
        filters, at, id,
        cardinality(passage_ids) = 0 AS is_empty,
        cardinality(passage_ids) = 0 OR (is_judged AND NOT was_of_use) AS is_blind
    FROM searches
),
/* What was answered when it was asked for the last time is no blind spot any more. */
questions AS MATERIALIZED (
    SELECT
        min(question) AS question,
        filters,
        count(*) FILTER (WHERE is_blind) AS times,
        max(at) FILTER (WHERE is_blind) AS last_at,
        bool_and(is_empty) FILTER (WHERE is_blind) AS found_nothing
    FROM asked
    GROUP BY lower(question), filters
    HAVING (array_agg(is_blind ORDER BY at DESC, id DESC))[1]
)
SELECT
    (SELECT count(*) FROM seen) AS passages,
    (SELECT count(*) FROM seen WHERE tier = 'foundational') AS foundational,
    (SELECT count(*) FROM memory.passages WHERE archived_at IS NOT NULL) AS archived,
    (SELECT count(*) FROM seen WHERE created_at >= :since) AS new,
    (SELECT count(*) FROM searches) AS searches,
    (SELECT count(*) FROM searches WHERE cardinality(passage_ids) = 0) AS empty,
    (SELECT count(*) FROM searches WHERE mode = 'keyword') AS by_words_alone,
    (SELECT count(*) FROM searches WHERE is_judged) AS judged,
    (SELECT count(*) FROM searches WHERE was_of_use) AS of_use,
    (SELECT count(*) FROM seen WHERE is_dead) AS dead,
    (SELECT count(*) FROM seen WHERE used = 0 AND reads = 0 AND not_used >= 2) AS unhelpful,
    (
        SELECT jsonb_agg(jsonb_build_array(first_times, passages) ORDER BY first_times)
        FROM (
            SELECT floors.first_times, count(seen.id) AS passages
            FROM (VALUES (0), (1), (2), (4), (8), (16)) AS floors (first_times)
            LEFT JOIN seen
                ON seen.times >= floors.first_times
                AND (
                    floors.first_times = 16
                    OR seen.times < greatest(floors.first_times * 2, 1)
                )
            GROUP BY floors.first_times
        ) AS buckets
    ) AS times_found,
    (
        SELECT jsonb_agg(jsonb_build_array(day, searches, empty) ORDER BY day)
        FROM (
            SELECT
                days.day::date AS day,
                count(searches.id) AS searches,
                count(searches.id) FILTER (WHERE cardinality(passage_ids) = 0) AS empty
            FROM pg_catalog.generate_series(
                date_trunc('day', :since::timestamptz AT TIME ZONE :zone::text),
                :until::timestamptz AT TIME ZONE :zone::text,
                '1 day'
            ) AS days (day)
            LEFT JOIN searches
                ON (searches.at AT TIME ZONE :zone::text)::date = days.day::date
            GROUP BY days.day
        ) AS by_day
    ) AS days,
    (
        SELECT jsonb_agg(to_jsonb(shown) ORDER BY shown.passages DESC, shown.scope)
        FROM (
            SELECT
                scope, count(*) AS passages, count(*) FILTER (WHERE is_dead) AS dead,
                sum(times) AS times
            FROM seen
            GROUP BY scope
            ORDER BY count(*) DESC, scope
            LIMIT :examples
        ) AS shown
    ) AS scopes,
    (
        SELECT jsonb_agg(to_jsonb(shown) ORDER BY shown.importance DESC, shown.id)
        FROM (
            SELECT
                seen.id, substr(passages.text, 1, 160) AS beginning, seen.scope, seen.tier,
                seen.importance, seen.created_at
            FROM seen
            JOIN memory.passages AS passages ON passages.id = seen.id
            WHERE seen.is_dead
            ORDER BY seen.importance DESC, seen.id
            LIMIT :examples
        ) AS shown
    ) AS dead_passages,
    (
        SELECT jsonb_agg(to_jsonb(shown) ORDER BY shown.not_used DESC, shown.id)
        FROM (
            SELECT seen.id, substr(passages.text, 1, 160) AS beginning, seen.times, seen.not_used
            FROM seen
            JOIN memory.passages AS passages ON passages.id = seen.id
            WHERE seen.used = 0 AND seen.reads = 0 AND seen.not_used >= 2
            ORDER BY seen.not_used DESC, seen.id
            LIMIT :examples
        ) AS shown
    ) AS unhelpful_passages,
    (
        SELECT jsonb_agg(to_jsonb(shown) ORDER BY shown.times DESC, shown.id)
        FROM (
            SELECT
                seen.id, substr(passages.text, 1, 160) AS beginning, seen.times, seen.used,
                seen.not_used, seen.last_at
            FROM seen
            JOIN memory.passages AS passages ON passages.id = seen.id
            WHERE seen.times >= 2
            ORDER BY seen.times DESC, seen.id
            LIMIT :examples
        ) AS shown
    ) AS hot_passages,
    (SELECT count(*) FROM questions) AS blind,
    (
        SELECT jsonb_agg(to_jsonb(shown) ORDER BY shown.times DESC, shown.last_at DESC)
        FROM (
            SELECT question, filters, times, last_at, found_nothing
            FROM questions
            ORDER BY times DESC, last_at DESC
            LIMIT :examples
        ) AS shown
    ) AS blind_spots;
