-- Core blocks: every version of each, and the writes that are under way.

CREATE TABLE memory.agent_core_block_versions (
    block_id    text        NOT NULL CHECK (block_id <> ''),
    number      integer     NOT NULL CHECK (number > 0),
    label       text        NOT NULL CHECK (label <> ''),
    agent_id    text        NOT NULL CHECK (agent_id <> ''),
    value       text        NOT NULL,
    sha256      text        NOT NULL
        CHECK (sha256 = encode(sha256(convert_to(value, 'UTF8')), 'hex')),
    author_kind text        NOT NULL
        CHECK (author_kind IN ('agent', 'client', 'operator', 'job', 'outside', 'han_solo')),
    author      text        NOT NULL CHECK (author <> ''),
    reason      text        NOT NULL,
    origin      text        NOT NULL CHECK (
        origin IN ('seed', 'write', 'restored', 'adopted_outside', 'revert_repaired', 'merged')
    ),
    source      integer     CHECK (source > 0 AND source < number),
    intent_id   uuid        UNIQUE,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (block_id, number)
);

COMMENT ON TABLE memory.agent_core_block_versions IS
    'Every text that a core block was seen to hold, by Letta''s id of the block. Never changed.';
COMMENT ON COLUMN memory.agent_core_block_versions.number IS 'From 1, without gaps.';
COMMENT ON COLUMN memory.agent_core_block_versions.label IS
    'The block''s label at that time; agent_id is the agent it was written for.';
COMMENT ON COLUMN memory.agent_core_block_versions.source IS
    'The version that this one came of: restored, put back, or edited outside of us.';
COMMENT ON COLUMN memory.agent_core_block_versions.intent_id IS
    'The intent that it was written under, so that none is recorded twice; null where none was.';

-- For the versions of a label that the agent no longer has.
CREATE INDEX agent_core_block_versions_by_agent
    ON memory.agent_core_block_versions (agent_id, label, created_at);

CREATE FUNCTION memory.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION '% of %.% is refused: its rows are history and stay as they are',
        TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

COMMENT ON FUNCTION memory.refuse_change() IS
    'Makes a table append-only. Its owner can still drop the triggers, and only on purpose.';

CREATE FUNCTION memory.require_next_version() RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    latest integer;
BEGIN
    SELECT max(number)
    INTO latest
    FROM memory.agent_core_block_versions
    WHERE block_id = NEW.block_id;
    IF NEW.number <> coalesce(latest, 0) + 1 THEN
        RAISE EXCEPTION 'version % does not follow version % of the block %',
            NEW.number, coalesce(latest, 0), NEW.block_id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END
$$;

-- By statement, so that one that matches no row is refused as well; by row, for whatever reaches
-- rows without a statement on the table. ALWAYS, since session_replication_role = replica would
-- skip them otherwise.
CREATE TRIGGER refuse_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON memory.agent_core_block_versions
    FOR EACH STATEMENT
    EXECUTE FUNCTION memory.refuse_change();
CREATE TRIGGER refuse_change_of_row
    BEFORE UPDATE OR DELETE ON memory.agent_core_block_versions
    FOR EACH ROW
    EXECUTE FUNCTION memory.refuse_change();
CREATE TRIGGER require_next_version
    BEFORE INSERT ON memory.agent_core_block_versions
    FOR EACH ROW
    EXECUTE FUNCTION memory.require_next_version();

ALTER TABLE memory.agent_core_block_versions
    ENABLE ALWAYS TRIGGER refuse_change;
ALTER TABLE memory.agent_core_block_versions
    ENABLE ALWAYS TRIGGER refuse_change_of_row;
ALTER TABLE memory.agent_core_block_versions
    ENABLE ALWAYS TRIGGER require_next_version;

CREATE TABLE han_solo.block_intents (
    intent_id    uuid        PRIMARY KEY,
    block_id     text        NOT NULL CHECK (block_id <> ''),
    label        text        NOT NULL,
    agent_id     text        NOT NULL,
    base         integer     NOT NULL CHECK (base > 0),
    value        text        NOT NULL,
    sha256       text        NOT NULL,
    author_kind  text        NOT NULL,
    author       text        NOT NULL,
    reason       text        NOT NULL,
    origin       text        NOT NULL,
    source       integer,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    abandoned_at timestamptz
);

COMMENT ON TABLE han_solo.block_intents IS
    'Block writes under way, or cut short: what was about to be sent to Letta. A row goes when its
version is recorded.';
COMMENT ON COLUMN han_solo.block_intents.base IS 'The version that the write was made on.';
COMMENT ON COLUMN han_solo.block_intents.abandoned_at IS
    'When it was found not to have landed. It is kept for a while, so that a write that Letta carries
out late is still known by its author.';

CREATE UNIQUE INDEX block_intents_one_open_per_block
    ON han_solo.block_intents (block_id)
    WHERE abandoned_at IS NULL;
