-- What the memory holds beside core blocks: passages, the chunks and vectors search goes by, links
-- between passages, and the log of searches.

CREATE TABLE memory.passages (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text        text        NOT NULL CHECK (text <> '' AND char_length(text) <= 2000000),
    title       text        NOT NULL DEFAULT '',
    author      text        NOT NULL DEFAULT '',
    origin      text        NOT NULL CHECK (origin IN ('user_stated', 'inferred', 'external')),
    source      text        NOT NULL DEFAULT '',
    thread      text        CHECK (thread <> ''),
    scope       text        NOT NULL CHECK (scope <> ''),
    tags        text[]      NOT NULL DEFAULT '{}',
    entities    text[]      NOT NULL DEFAULT '{}',
    tier        text        NOT NULL DEFAULT 'standard'
        CHECK (tier IN ('standard', 'foundational')),
    importance  real        NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1),
    happened_at timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    principal   text        NOT NULL CHECK (principal <> ''),
    agent_id    text        CHECK (agent_id <> ''),
    import_key  text        UNIQUE CHECK (import_key <> ''),
    archived_at timestamptz,
    archived_by text        CHECK (archived_by <> ''),
    CHECK ((archived_at IS NULL) = (archived_by IS NULL)),
    CHECK (tier = 'standard' OR archived_at IS NULL)
);

COMMENT ON TABLE memory.passages IS
    'What is remembered in prose. The text of a row never changes; notes are added beside it.';
COMMENT ON COLUMN memory.passages.author IS 'Whose words they are, as the writer said.';
COMMENT ON COLUMN memory.passages.thread IS
    'What it is a part of, such as a session: its neighbours there are its context.';
COMMENT ON COLUMN memory.passages.happened_at IS 'When it was said, or when what it tells was.';
COMMENT ON COLUMN memory.passages.principal IS 'The authenticated caller that wrote it.';
COMMENT ON COLUMN memory.passages.import_key IS
    'Its name where it was imported from, so that a second import adds nothing.';

CREATE INDEX passages_by_tag ON memory.passages USING gin (tags);
CREATE INDEX passages_by_entity ON memory.passages USING gin (entities);
CREATE INDEX passages_by_scope ON memory.passages (scope, id);
CREATE INDEX passages_by_time ON memory.passages (happened_at);

CREATE FUNCTION memory.keep_passage() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'memory.passages is never emptied'
            USING ERRCODE = 'restrict_violation';
    ELSIF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'passage % is foundational: it is never deleted', OLD.id
            USING ERRCODE = 'restrict_violation';
    ELSIF OLD.tier = 'foundational' AND NEW.tier <> 'foundational' THEN
        RAISE EXCEPTION 'passage % is foundational: it stays so', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RAISE EXCEPTION 'the text of passage % never changes: notes are added beside it', OLD.id
        USING ERRCODE = 'restrict_violation';
END;
$$;

CREATE TRIGGER keep_foundational
    BEFORE DELETE ON memory.passages
    FOR EACH ROW
    WHEN (OLD.tier = 'foundational')
    EXECUTE FUNCTION memory.keep_passage();
CREATE TRIGGER keep_text_and_tier
    BEFORE UPDATE ON memory.passages
    FOR EACH ROW
    WHEN (
        (OLD.tier = 'foundational' AND NEW.tier <> 'foundational')
        OR OLD.text IS DISTINCT FROM NEW.text
        OR OLD.id <> NEW.id
    )
    EXECUTE FUNCTION memory.keep_passage();
CREATE TRIGGER keep_all
    BEFORE TRUNCATE ON memory.passages
    FOR EACH STATEMENT
    EXECUTE FUNCTION memory.keep_passage();

ALTER TABLE memory.passages
    ENABLE ALWAYS TRIGGER keep_foundational;
ALTER TABLE memory.passages
    ENABLE ALWAYS TRIGGER keep_text_and_tier;
ALTER TABLE memory.passages
    ENABLE ALWAYS TRIGGER keep_all;

CREATE TABLE memory.passage_notes (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    passage_id bigint      NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    text       text        NOT NULL CHECK (text <> '' AND char_length(text) <= 20000),
    principal  text        NOT NULL CHECK (principal <> ''),
    agent_id   text        CHECK (agent_id <> ''),
    created_at timestamptz NOT NULL
);

COMMENT ON TABLE memory.passage_notes IS 'What was added to a passage later, each with its date.';

CREATE INDEX passage_notes_by_passage ON memory.passage_notes (passage_id, id);

CREATE TABLE memory.passage_links (
    from_id    bigint      NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    to_id      bigint      NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    kind       text        NOT NULL CHECK (kind ~ '^[a-z][a-z_]{0,31}$'),
    note       text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    principal  text        NOT NULL CHECK (principal <> ''),
    agent_id   text        CHECK (agent_id <> ''),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (from_id, to_id, kind),
    CHECK (from_id <> to_id)
);

COMMENT ON TABLE memory.passage_links IS
    'That one passage belongs to another. Search adds what is linked after it has ranked.';

CREATE INDEX passage_links_back ON memory.passage_links (to_id);

-- A chunk is what search finds: a passage, a piece of a long one, or a note on it.
CREATE TABLE memory.chunks (
    id           bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    passage_id   bigint   NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    note_id      bigint   REFERENCES memory.passage_notes (id) ON DELETE CASCADE,
    number       integer  NOT NULL CHECK (number > 0),
    thread       text     CHECK (thread <> ''),
    first_char   integer  NOT NULL CHECK (first_char > 0),
    chars        integer  NOT NULL CHECK (chars > 0),
    is_hidden    boolean  NOT NULL DEFAULT false,
    asks         boolean  NOT NULL,
    tells_time   boolean  NOT NULL,
    text_sha256  bytea    NOT NULL CHECK (octet_length(text_sha256) = 32),
    words        tsvector NOT NULL,
    UNIQUE NULLS NOT DISTINCT (passage_id, note_id, number)
);

COMMENT ON TABLE memory.chunks IS 'What search finds. Characters are counted from 1.';
COMMENT ON COLUMN memory.chunks.thread IS
    'Where its neighbours are looked for: the passage''s own thread, or else the long passage.';
COMMENT ON COLUMN memory.chunks.is_hidden IS 'The passage is archived.';
COMMENT ON COLUMN memory.chunks.asks IS 'It ends in a question, so it rarely holds the answer.';
COMMENT ON COLUMN memory.chunks.tells_time IS 'It has an expression of time in it.';
COMMENT ON COLUMN memory.chunks.text_sha256 IS 'Of what is embedded: date, author, title, text.';
COMMENT ON COLUMN memory.chunks.words IS
    'Weight A: the author; B: the date; C: the title and tags; D: the text.';

CREATE INDEX chunks_by_words ON memory.chunks USING gin (words);
CREATE INDEX chunks_by_thread ON memory.chunks (thread, id) WHERE thread IS NOT NULL;

CREATE TABLE memory.contexts (
    chunk_id bigint   PRIMARY KEY REFERENCES memory.chunks (id) ON DELETE CASCADE,
    words    tsvector NOT NULL
) WITH (fillfactor = 70);

COMMENT ON TABLE memory.contexts IS
    'The words of a chunk together with those of its neighbours; none for a chunk without any.';

CREATE TABLE memory.embedders (
    id           smallint    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider     text        NOT NULL CHECK (provider <> ''),
    model        text        NOT NULL CHECK (model <> ''),
    width        integer     NOT NULL CHECK (width BETWEEN 1 AND 4000),
    state        text        NOT NULL CHECK (state IN ('filling', 'active', 'retired')),
    created_at   timestamptz NOT NULL,
    activated_at timestamptz,
    UNIQUE (provider, model, width),
    CHECK (state = 'filling' OR activated_at IS NOT NULL)
);

COMMENT ON TABLE memory.embedders IS
    'Models that made vectors. One is searched by; a new one is filled beside it first.';

CREATE UNIQUE INDEX embedders_one_active ON memory.embedders (state) WHERE state = 'active';

CREATE TABLE memory.vectors (
    embedder_id smallint NOT NULL REFERENCES memory.embedders (id),
    chunk_id    bigint   NOT NULL REFERENCES memory.chunks (id) ON DELETE CASCADE,
    text_sha256 bytea    NOT NULL CHECK (octet_length(text_sha256) = 32),
    own         halfvec,
    context     halfvec,
    PRIMARY KEY (embedder_id, chunk_id)
) WITH (fillfactor = 80);

COMMENT ON TABLE memory.vectors IS
    'One row for a chunk and a model, of that model''s width. Each model has an index of its own.';
COMMENT ON COLUMN memory.vectors.text_sha256 IS
    'Of what was embedded; it is stale where the chunk''s differs.';
COMMENT ON COLUMN memory.vectors.own IS
    'Null where the model knows no word of the text, and so it is near nothing.';
COMMENT ON COLUMN memory.vectors.context IS
    'The mean of its own vector and those of its neighbours; null for a chunk without any.';

ALTER TABLE memory.vectors
    ALTER COLUMN own SET STORAGE MAIN,
    ALTER COLUMN context SET STORAGE MAIN;

CREATE INDEX vectors_by_chunk ON memory.vectors (chunk_id);

-- How often each word occurs, counted now and then: ranking needs it, and to be a little behind
-- does no harm.
CREATE TABLE memory.word_counts (
    word   text    PRIMARY KEY,
    chunks integer NOT NULL CHECK (chunks > 0)
);
CREATE TABLE memory.word_totals (
    is_only       boolean          PRIMARY KEY DEFAULT true CHECK (is_only),
    chunks        bigint           NOT NULL,
    last_chunk_id bigint           NOT NULL,
    mean_own      double precision NOT NULL,
    mean_context  double precision NOT NULL,
    counted_at    timestamptz      NOT NULL
);

COMMENT ON TABLE memory.word_counts IS 'In how many chunks a word occurs.';
COMMENT ON TABLE memory.word_totals IS
    'How many chunks were counted, up to which, and how many words they have on average.';

CREATE TABLE memory.searches (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    principal   text        NOT NULL CHECK (principal <> ''),
    agent_id    text        CHECK (agent_id <> ''),
    queries     text[]      NOT NULL CHECK (cardinality(queries) > 0),
    filters     jsonb       NOT NULL,
    mode        text        NOT NULL CHECK (mode IN ('hybrid', 'keyword')),
    reason      text        NOT NULL DEFAULT '',
    passage_ids bigint[]    NOT NULL
);

COMMENT ON TABLE memory.searches IS
    'Every search, with the passages it returned, best first; none where it found nothing.';

CREATE INDEX searches_by_time ON memory.searches (at);
CREATE INDEX searches_by_passage ON memory.searches USING gin (passage_ids);

CREATE TABLE memory.passage_uses (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    search_id  bigint      REFERENCES memory.searches (id) ON DELETE CASCADE,
    passage_id bigint      NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    kind       text        NOT NULL CHECK (kind IN ('read', 'used', 'not_used')),
    note       text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    principal  text        NOT NULL CHECK (principal <> ''),
    agent_id   text        CHECK (agent_id <> ''),
    at         timestamptz NOT NULL
);

COMMENT ON TABLE memory.passage_uses IS
    'What became of passages: read whole, or said to have been of use or of none.';

CREATE INDEX passage_uses_by_passage ON memory.passage_uses (passage_id, at);

CREATE AGGREGATE memory.join_words(tsvector) (
    SFUNC = tsvector_concat,
    STYPE = tsvector,
    INITCOND = ''
);

-- What one word adds to a chunk's BM25 score, before its weight. ts_rank of one word that occurs n
-- times is (1 + 1/4 + ... + 1/n^2) / 1.6449, which tells n; k1 = 1.2 and b = 0.6.
CREATE FUNCTION memory.saturate(rank real, length integer, mean_length double precision)
    RETURNS double precision
    LANGUAGE sql
    IMMUTABLE
    PARALLEL SAFE
RETURN CASE
    WHEN rank > 0 THEN
        2.2 * (1 / (1.644934 * greatest(1 - rank, 0.001)) - 0.5)
        / (
            1 / (1.644934 * greatest(1 - rank, 0.001)) - 0.5
            + 1.2 * (0.4 + 0.6 * length / greatest(mean_length, 1))
        )
    ELSE 0
END;
