-- The caretaker's own state (han_solo) and the memory (memory).

CREATE SCHEMA IF NOT EXISTS han_solo;
CREATE SCHEMA IF NOT EXISTS memory;

CREATE TABLE han_solo.migrations (
    version    integer     PRIMARY KEY CHECK (version > 0),
    name       text        NOT NULL,
    checksum   text        NOT NULL CHECK (checksum ~ '^[0-9a-f]{64}$'),
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text        NOT NULL
);

COMMENT ON TABLE han_solo.migrations IS
    'What was applied: name and SHA-256 of the file, and the release that applied it.';

CREATE TABLE han_solo.config (
    key        text        PRIMARY KEY CHECK (key ~ '^[a-z][a-z0-9_.]{0,62}$'),
    value      jsonb       NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    updated_by text        NOT NULL CHECK (updated_by <> '')
);

COMMENT ON TABLE han_solo.config IS 'Switches that every process of the installation reads.';

CREATE TABLE han_solo.agents (
    name       text        PRIMARY KEY CHECK (name <> ''),
    agent_id   text        NOT NULL UNIQUE CHECK (agent_id <> ''),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON TABLE han_solo.agents IS
    'The one place that knows Letta''s id of the agent of a spec.';

CREATE TABLE han_solo.tokens (
    id            text        PRIMARY KEY CHECK (id ~ '^[a-z2-7]{8}$'),
    name          text        NOT NULL CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    kind          text        NOT NULL CHECK (kind IN ('agent', 'client', 'operator')),
    scopes        text[]      NOT NULL CHECK (cardinality(scopes) > 0),
    secret_sha256 bytea       NOT NULL CHECK (octet_length(secret_sha256) = 32),
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz CHECK (expires_at > created_at),
    revoked_at    timestamptz,
    last_used_at  timestamptz
);

COMMENT ON TABLE han_solo.tokens IS
    'Who may call the bridge. The secret itself is nowhere; a revoked row stays as the record.';
COMMENT ON COLUMN han_solo.tokens.revoked_at IS
    'From then on it is refused; in the future while a rotated token has its grace.';

-- A rotated token in its grace has revoked_at set already, so its successor may bear the name.
CREATE UNIQUE INDEX tokens_one_live_per_name
    ON han_solo.tokens (name)
    WHERE revoked_at IS NULL;

CREATE TABLE memory.notecards (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text              text        NOT NULL
        CHECK (char_length(text) <= 4000 AND btrim(text, E' \t\r\n') <> ''),
    creator           text        NOT NULL
        CHECK (char_length(creator) <= 64 AND btrim(creator) <> '' AND creator !~ '[[:cntrl:]]'),
    status            text        NOT NULL DEFAULT 'active'
        CHECK (status IN ('active', 'completed', 'archived')),
    source            text        NOT NULL CHECK (source IN ('chat', 'manual')),
    principal         text        NOT NULL CHECK (principal <> ''),
    agent_id          text        CHECK (agent_id <> ''),
    created_at        timestamptz NOT NULL,
    status_changed_at timestamptz NOT NULL,
    status_changed_by text        NOT NULL CHECK (status_changed_by <> '')
);

COMMENT ON TABLE memory.notecards IS
    'Short notes of things that surfaced mid-conversation and that nobody should forget.';
COMMENT ON COLUMN memory.notecards.creator IS 'Who it is from, as the writer says.';
COMMENT ON COLUMN memory.notecards.principal IS 'The authenticated caller that wrote it.';
COMMENT ON COLUMN memory.notecards.agent_id IS
    'Letta''s id of the agent that called, when one did.';

-- Listing goes newest first, by status or over all of them.
CREATE INDEX notecards_by_status ON memory.notecards (status, id);
