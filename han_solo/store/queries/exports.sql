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

-- name: export_transcripts()
-- Every record of every transcript, with the session it belongs to.
SELECT (to_jsonb(t) || jsonb_build_object('digest', encode(t.digest, 'hex')))::text AS line
FROM memory.transcripts AS t
ORDER BY t.id;

-- name: export_transcript_sessions()
-- The sessions of transcripts.
SELECT to_jsonb(s)::text AS line
FROM memory.transcript_sessions AS s
ORDER BY s.session_id;

-- name: export_transcript_files()
-- Which transcripts were read, and how far.
SELECT to_jsonb(f)::text AS line
FROM memory.transcript_files AS f
ORDER BY f.id;

-- name: export_transcript_usage()
-- The tokens of transcripts, by API message.
SELECT to_jsonb(u)::text AS line
FROM memory.transcript_usage AS u
ORDER BY u.message_id;

-- name: export_transcript_damage()
-- What was wrong in transcripts, with the bytes as hex.
SELECT to_jsonb(d)::text AS line
FROM memory.transcript_damage AS d
ORDER BY d.file_id, d.generation, d.file_offset, d.position;

-- name: export_passages()
-- Every passage, whatever its tier and state.
SELECT to_jsonb(p)::text AS line
FROM memory.passages AS p;

-- name: export_passage_notes()
-- The notes on passages.
SELECT to_jsonb(n)::text AS line
FROM memory.passage_notes AS n;

-- name: export_passage_links()
-- The links between passages.
SELECT to_jsonb(l)::text AS line
FROM memory.passage_links AS l;

-- name: export_chunks()
-- The pieces that long passages are cut into for the search.
SELECT to_jsonb(c)::text AS line
FROM memory.chunks AS c;

-- name: export_searches()
-- Every search of the memory, and what it found.
SELECT to_jsonb(s)::text AS line
FROM memory.searches AS s;

-- name: export_passage_uses()
-- Which finds were used.
SELECT to_jsonb(u)::text AS line
FROM memory.passage_uses AS u;

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
