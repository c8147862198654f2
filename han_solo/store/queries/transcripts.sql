-- name: take_turn()!
-- Wait until no other process stores records: two with the same ones would lock each other out.
SELECT pg_advisory_xact_lock(hashtextextended('han-solo transcripts', 0));

-- name: make_staging()!
-- Make the table that a piece of a file is copied into; it goes with the transaction.
CREATE TEMP TABLE transcript_staging (
    session_id text, parent_id text, agent_id text, project text,
    file_offset bigint, kind text, subtype text, uuid text, parent_uuid text,
    at timestamptz, text text, raw text, digest bytea, message_id text, model text,
    input_tokens bigint, output_tokens bigint, cache_write_tokens bigint, cache_read_tokens bigint
) ON COMMIT DROP;

-- name: take_staging(file_id, generation)$
-- Move what was copied into the records; one that is there already stays. Returns how many are new.
WITH taken AS (
    INSERT INTO memory.transcripts (
        session_id, file_id, generation, file_offset, kind, subtype, uuid, parent_uuid, at, text,
        raw, digest, message_id, model
    )
    SELECT
        session_id, :file_id, :generation, file_offset, kind, subtype, uuid, parent_uuid, at, text,
        raw, digest, message_id, model
    FROM pg_temp.transcript_staging  -- in the file's order, as it was copied
    ON CONFLICT (digest, uuid) DO NOTHING
    RETURNING id
)
SELECT count(*)
FROM taken;

-- name: take_sessions()!
-- Note the sessions of what was copied, their span of time and their titles.
INSERT INTO memory.transcript_sessions AS known (
    session_id, parent_id, agent_id, project, title, title_rank, first_at, last_at
)
SELECT
    staged.session_id,
    min(staged.parent_id),
    min(staged.agent_id),
    coalesce((array_agg(staged.project ORDER BY staged.file_offset) FILTER (WHERE staged.project <> ''))[1], ''),
    (array_agg(staged.text ORDER BY staged.subtype = 'custom-title' DESC, staged.file_offset DESC)
        FILTER (WHERE staged.kind = 'title'))[1],
    coalesce(max(CASE staged.subtype WHEN 'custom-title' THEN 3 WHEN 'ai-title' THEN 2 ELSE 1 END)
        FILTER (WHERE staged.kind = 'title'), 0),
    min(staged.at),
    max(staged.at)
FROM pg_temp.transcript_staging AS staged
GROUP BY staged.session_id
ON CONFLICT (session_id)
DO UPDATE SET
    parent_id = coalesce(known.parent_id, excluded.parent_id),
    agent_id = coalesce(known.agent_id, excluded.agent_id),
    project = CASE known.project WHEN '' THEN excluded.project ELSE known.project END,
    title = CASE WHEN excluded.title_rank >= known.title_rank
        THEN coalesce(excluded.title, known.title) ELSE known.title END,
    title_rank = greatest(known.title_rank, excluded.title_rank),
    first_at = least(known.first_at, excluded.first_at),
    last_at = greatest(known.last_at, excluded.last_at);

-- name: take_usage()!
-- Note the tokens of each API message once; the last of its records has them all.
INSERT INTO memory.transcript_usage AS known (
    message_id, session_id, model, at, input_tokens, output_tokens, cache_write_tokens,
    cache_read_tokens
)
SELECT DISTINCT ON (message_id)
    message_id, session_id, model, at, input_tokens, output_tokens, cache_write_tokens,
    cache_read_tokens
FROM pg_temp.transcript_staging
WHERE message_id <> ''
    AND output_tokens IS NOT NULL
ORDER BY message_id, output_tokens DESC, file_offset
ON CONFLICT (message_id)
DO UPDATE SET
    input_tokens = greatest(known.input_tokens, excluded.input_tokens),
    output_tokens = greatest(known.output_tokens, excluded.output_tokens),
    cache_write_tokens = greatest(known.cache_write_tokens, excluded.cache_write_tokens),
    cache_read_tokens = greatest(known.cache_read_tokens, excluded.cache_read_tokens)
WHERE known.output_tokens < excluded.output_tokens;

-- name: note_damage(file_id, generation, file_offset, position, kind, raw, found_at)!
-- Keep what was wrong in a file.
INSERT INTO memory.transcript_damage (
    file_id, generation, file_offset, position, kind, raw, found_at
)
VALUES (:file_id, :generation, :file_offset, :position, :kind, :raw, :found_at)
ON CONFLICT DO NOTHING;

-- name: list_files(machine)
-- List the files of a machine that were read, and how far.
SELECT id, path, device, inode, generation, read_to, tail, size, changed_ns
FROM memory.transcript_files
WHERE machine = :machine;

-- name: open_file(machine, path, device, inode, read_at)^
-- Note a file that is read for the first time, or from its beginning again.
INSERT INTO memory.transcript_files AS known (machine, path, device, inode, read_at)
VALUES (:machine, :path, :device, :inode, :read_at)
ON CONFLICT (machine, path)
DO UPDATE SET
    device = excluded.device,
    inode = excluded.inode,
    generation = known.generation + 1,
    read_to = 0,
    tail = '',
    size = 0,
    changed_ns = 0,
    read_at = excluded.read_at
RETURNING id, path, device, inode, generation, read_to, tail, size, changed_ns;

-- name: advance_file(id, read_from, read_to, tail, size, changed_ns, read_at)$
-- Note how far a file was read; null when another process read it meanwhile.
UPDATE memory.transcript_files
SET
    read_to = :read_to,
    tail = :tail,
    size = :size,
    changed_ns = :changed_ns,
    read_at = :read_at
WHERE id = :id
    AND read_to = :read_from
RETURNING id;

-- name: search(query, since, project, session_id, limit_rows)
-- Find what was said, the best first and then the newest; of a common word the newest 2,000.
WITH found AS (
    SELECT t.id, t.session_id, t.kind, t.at, t.text, session.project, session.title
    FROM memory.transcripts AS t
    JOIN memory.transcript_sessions AS session
        ON session.session_id = t.session_id
    WHERE to_tsvector('simple', substr(t.text, 1, 50000)) @@ websearch_to_tsquery('simple', :query)
        AND t.kind IN ('prompt', 'queued_prompt', 'answer', 'summary', 'title')
        AND (:since::timestamptz IS NULL OR t.at >= :since::timestamptz)
        AND (:session_id::text IS NULL OR t.session_id = :session_id)
        AND (:project::text IS NULL OR strpos(lower(session.project), lower(:project)) > 0)
    ORDER BY t.at DESC NULLS LAST, t.id DESC
    LIMIT 2000
),
best AS (
    SELECT
        id, session_id, kind, at, text, project, title,
        ts_rank(
            to_tsvector('simple', substr(text, 1, 50000)), websearch_to_tsquery('simple', :query)
        ) AS rank
    FROM found
    ORDER BY rank DESC, at DESC NULLS LAST, id DESC
    LIMIT :limit_rows
)
SELECT
    id, session_id, kind, at, project, title,
    ts_headline(
        'simple',
        substr(text, 1, 50000),
        websearch_to_tsquery('simple', :query),
        'MaxFragments=1, MaxWords=30, MinWords=12, StartSel=**, StopSel=**'
    ) AS snippet
FROM best
ORDER BY rank DESC, at DESC NULLS LAST, id DESC;

-- name: read_session(session_id, after_id, limit_rows)
-- Read a session's records in the order of its file.
SELECT id, kind, subtype, at, text, model
FROM memory.transcripts
WHERE session_id = :session_id
    AND id > :after_id
    AND kind NOT IN ('event', 'attachment')
ORDER BY id
LIMIT :limit_rows;

-- name: find_session(session_id)^
-- Find a session by its id, or by the beginning of it.
SELECT session_id, parent_id, agent_id, project, title, first_at, last_at
FROM memory.transcript_sessions
WHERE session_id = :session_id
    OR starts_with(session_id, :session_id)
ORDER BY session_id = :session_id DESC, last_at DESC NULLS LAST
LIMIT 1;

-- name: list_sessions(since, project, limit_rows)
-- List sessions, the newest first.
SELECT session_id, parent_id, agent_id, project, title, first_at, last_at
FROM memory.transcript_sessions
WHERE (:since::timestamptz IS NULL OR last_at >= :since::timestamptz)
    AND (:project::text IS NULL OR strpos(lower(project), lower(:project)) > 0)
ORDER BY last_at DESC NULLS LAST, session_id
LIMIT :limit_rows;

-- name: count_kinds()
-- Count records by kind.
SELECT kind, count(*) AS count
FROM memory.transcripts
GROUP BY kind
ORDER BY kind;

-- name: count_damage()
-- Count damage by kind, of the files as they were read last.
SELECT damage.kind, count(*) AS count
FROM memory.transcript_damage AS damage
JOIN memory.transcript_files AS files
    ON files.id = damage.file_id AND files.generation = damage.generation
GROUP BY damage.kind
ORDER BY damage.kind;

-- name: fetch_totals()^
-- Sum up what is there.
SELECT
    (SELECT count(*) FROM memory.transcript_files) AS files,
    (SELECT count(*) FROM memory.transcript_sessions) AS sessions,
    (SELECT max(read_at) FROM memory.transcript_files) AS last_read_at,
    (SELECT coalesce(sum(input_tokens), 0) FROM memory.transcript_usage)::bigint AS input_tokens,
    (SELECT coalesce(sum(output_tokens), 0) FROM memory.transcript_usage)::bigint AS output_tokens;
