-- Claude Code's transcripts: files and how far each was read, sessions, records, what was damaged.

CREATE TABLE memory.transcript_files (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine    text        NOT NULL CHECK (machine <> ''),
    path       text        NOT NULL CHECK (path <> ''),
    device     bigint      NOT NULL,
    inode      numeric     NOT NULL,
    generation integer     NOT NULL DEFAULT 1 CHECK (generation > 0),
    read_to    bigint      NOT NULL DEFAULT 0 CHECK (read_to >= 0),
    tail       bytea       NOT NULL DEFAULT '',
    size       bigint      NOT NULL DEFAULT 0 CHECK (size >= 0),
    changed_ns numeric     NOT NULL DEFAULT 0,
    read_at    timestamptz NOT NULL,
    UNIQUE (machine, path)
);

COMMENT ON TABLE memory.transcript_files IS
    'How far each file was read. A file that went is no reason to let its rows go.';
COMMENT ON COLUMN memory.transcript_files.generation IS
    'Counts how often it was rewritten or replaced, and so read from its beginning again.';
COMMENT ON COLUMN memory.transcript_files.tail IS
    'Hash of the last bytes before read_to: other bytes there are another file.';

CREATE TABLE memory.transcript_sessions (
    session_id text        PRIMARY KEY CHECK (session_id <> ''),
    parent_id  text        CHECK (parent_id <> session_id),
    agent_id   text,
    project    text        NOT NULL,
    title      text,
    title_rank integer     NOT NULL DEFAULT 0,
    first_at   timestamptz,
    last_at    timestamptz
);

COMMENT ON TABLE memory.transcript_sessions IS
    'One row for each session; a side agent has one of its own, with a link to the one it worked for.';
COMMENT ON COLUMN memory.transcript_sessions.title_rank IS
    'A title that a person gave stands above one that a model made, and that above a summary.';

CREATE INDEX transcript_sessions_by_time ON memory.transcript_sessions (last_at);
CREATE INDEX transcript_sessions_by_parent
    ON memory.transcript_sessions (parent_id)
    WHERE parent_id IS NOT NULL;

CREATE TABLE memory.transcripts (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id  text        NOT NULL,
    file_id     bigint      NOT NULL,
    generation  integer     NOT NULL,
    file_offset bigint      NOT NULL CHECK (file_offset >= 0),
    kind        text        NOT NULL CHECK (kind <> ''),
    subtype     text        NOT NULL,
    uuid        text        NOT NULL,
    parent_uuid text,
    at          timestamptz,
    text        text        NOT NULL,
    raw         text,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 16),
    message_id  text,
    model       text
);

COMMENT ON TABLE memory.transcripts IS 'One row for each record of a transcript; never deleted.';
COMMENT ON COLUMN memory.transcripts.uuid IS 'Empty where the record has none.';
COMMENT ON COLUMN memory.transcripts.digest IS
    'With uuid the identity: a record copied into another session, or read again, is the same one.';
COMMENT ON COLUMN memory.transcripts.raw IS
    'The record itself where its text is not all that it says; known shapes of secrets taken out.';

CREATE UNIQUE INDEX transcripts_identity ON memory.transcripts (digest, uuid);
CREATE INDEX transcripts_by_session ON memory.transcripts (session_id, at, id);
CREATE INDEX transcripts_by_time ON memory.transcripts USING brin (at);

-- What was said and what it was about; the output of tools is not searched.
CREATE INDEX transcripts_search
    ON memory.transcripts
    USING gin (to_tsvector('simple', substr(text, 1, 50000)))
    WHERE kind IN ('prompt', 'queued_prompt', 'answer', 'summary', 'title');

CREATE TABLE memory.transcript_usage (
    message_id          text        PRIMARY KEY CHECK (message_id <> ''),
    session_id          text        NOT NULL,
    model               text,
    at                  timestamptz,
    input_tokens        bigint      NOT NULL CHECK (input_tokens >= 0),
    output_tokens       bigint      NOT NULL CHECK (output_tokens >= 0),
    cache_write_tokens  bigint      NOT NULL CHECK (cache_write_tokens >= 0),
    cache_read_tokens   bigint      NOT NULL CHECK (cache_read_tokens >= 0)
);

COMMENT ON TABLE memory.transcript_usage IS
    'Tokens by API message: it spans several records, each of which repeats them.';

CREATE TABLE memory.transcript_damage (
    file_id     bigint      NOT NULL,
    generation  integer     NOT NULL,
    file_offset bigint      NOT NULL CHECK (file_offset >= 0),
    position    integer     NOT NULL CHECK (position >= 0),
    kind        text        NOT NULL CHECK (kind <> ''),
    raw         bytea       NOT NULL,
    found_at    timestamptz NOT NULL,
    PRIMARY KEY (file_id, generation, file_offset, position)
);

COMMENT ON TABLE memory.transcript_damage IS
    'What was wrong in a file, and where. raw holds the bytes of what could not be taken.';
