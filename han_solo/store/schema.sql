-- The whole schema, as the migrations leave it. A test compares the two, so a migration changes
-- this file too. Columns stand in the order in which the migrations add them.
-- The extension vector is not part of it: on a managed Postgres the operator makes it.
--
-- han_solo: the caretaker's own state. memory: what the agent remembers.

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

-- What follows is the reconciler's journal, and what it must remember because Letta can not tell.

CREATE TABLE han_solo.reconcile_runs (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      uuid        NOT NULL UNIQUE,
    agent_name  text        NOT NULL CHECK (agent_name <> ''),
    agent_id    text        NOT NULL CHECK (agent_id <> ''),
    started_at  timestamptz NOT NULL,
    finished_at timestamptz CHECK (finished_at >= started_at),
    outcome     text        CHECK (outcome IN ('done', 'failed', 'abandoned')),
    plan        jsonb       NOT NULL,
    error       text,
    CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CHECK ((outcome = 'failed') = (error IS NOT NULL))
);

COMMENT ON TABLE han_solo.reconcile_runs IS
    'One row for each plan that was carried out; a sync without anything to do leaves none.';
COMMENT ON COLUMN han_solo.reconcile_runs.outcome IS
    'Null while it runs; abandoned when the process ended before it did.';

CREATE INDEX reconcile_runs_by_agent ON han_solo.reconcile_runs (agent_name, id);

CREATE TABLE han_solo.reconcile_steps (
    run_id   uuid        NOT NULL REFERENCES han_solo.reconcile_runs (run_id),
    position integer     NOT NULL CHECK (position >= 0),
    kind     text        NOT NULL CHECK (kind <> ''),
    target   text        NOT NULL,
    outcome  text        NOT NULL CHECK (outcome IN ('done', 'failed')),
    detail   jsonb       NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (run_id, position)
);

COMMENT ON TABLE han_solo.reconcile_steps IS
    'What was done and read back, in the plan''s order. A step of the plan without a row was not
reached, or its process ended during it.';
COMMENT ON COLUMN han_solo.reconcile_steps.detail IS
    'Ids, and what was there before: a replaced system prompt or setting can be had back.';

CREATE TABLE han_solo.mcp_servers (
    server_id     text        PRIMARY KEY CHECK (server_id <> ''),
    name          text        NOT NULL CHECK (name <> ''),
    registered_at timestamptz NOT NULL
);

COMMENT ON TABLE han_solo.mcp_servers IS
    'MCP servers in Letta that we registered, and so may give a new address.';

CREATE TABLE han_solo.agent_blocks (
    agent_id text        NOT NULL CHECK (agent_id <> ''),
    label    text        NOT NULL CHECK (label <> ''),
    block_id text        NOT NULL CHECK (block_id <> ''),
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (agent_id, label)
);

COMMENT ON TABLE han_solo.agent_blocks IS
    'The block that each declared label was last seen as, so that one that was detached comes back
with what it holds.';

-- What follows are the core blocks: every version of each, and the writes that are under way.

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

-- What follows are the turns of the agents: the queue for the floor, and what came of each.

CREATE TABLE han_solo.turns (
    id                 bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    turn_id            uuid        NOT NULL UNIQUE,
    agent_id           text        NOT NULL CHECK (agent_id <> ''),
    sender             text        NOT NULL CHECK (sender <> ''),
    backend_pid        integer     NOT NULL,
    backend_started_at timestamptz,
    queued_at          timestamptz NOT NULL,
    started_at         timestamptz,
    ended_at           timestamptz,
    outcome            text        CHECK (outcome IN ('answered', 'silent', 'unknown', 'not_sent')),
    cause              text        CHECK (cause ~ '^[a-z_]{1,40}$'),
    stop_reason        text,
    steps              integer     CHECK (steps >= 0),
    tools              text[]      NOT NULL DEFAULT '{}',
    run_id             text,
    reverted           text[],
    CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CHECK (started_at IS NOT NULL OR outcome IS NULL OR outcome = 'not_sent'),
    CHECK (outcome <> 'silent' OR cause IS NOT NULL)
);

COMMENT ON TABLE han_solo.turns IS
    'One row for each message to an agent: the queue, the record, and what tells a turn of a dead
process from one that runs.';
COMMENT ON COLUMN han_solo.turns.backend_pid IS
    'With backend_started_at the session that the sender holds until the end; gone, so is the sender.';
COMMENT ON COLUMN han_solo.turns.started_at IS 'Null while the sender waits for the floor.';
COMMENT ON COLUMN han_solo.turns.tools IS 'Names of the tools that were called, in order.';
COMMENT ON COLUMN han_solo.turns.reverted IS
    'Labels of the blocks that held an older text after the turn; null when nobody looked.';

CREATE INDEX turns_by_agent ON han_solo.turns (agent_id, id);

-- The few rows that wait, run or are to be settled, out of years of them.
CREATE INDEX turns_open
    ON han_solo.turns (agent_id, id)
    WHERE outcome IS NULL OR outcome = 'unknown';

-- What follows is what guards found, and what was done about it.

CREATE TABLE han_solo.findings (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    guard        text        NOT NULL CHECK (guard ~ '^[a-z][a-z0-9_]{0,47}$'),
    agent_id     text        NOT NULL CHECK (agent_id <> ''),
    key          text        NOT NULL,
    severity     text        NOT NULL CHECK (severity IN ('warning', 'critical')),
    summary      text        NOT NULL CHECK (summary <> ''),
    hint         text        NOT NULL,
    detail       jsonb       NOT NULL DEFAULT '{}',
    opened_at    timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL CHECK (last_seen_at >= opened_at),
    times_seen   integer     NOT NULL DEFAULT 1 CHECK (times_seen > 0),
    alert_due_at timestamptz,
    alerted_at   timestamptz,
    alerted_as   text        CHECK (alerted_as IN ('warning', 'critical')),
    resolved_at  timestamptz CHECK (resolved_at >= opened_at)
);

COMMENT ON TABLE han_solo.findings IS
    'One row from the moment a guard sees something until it is gone; seen again later, a new row.';
COMMENT ON COLUMN han_solo.findings.key IS 'What it is about, the same at each run of the guard.';
COMMENT ON COLUMN han_solo.findings.alert_due_at IS
    'When its alert is to be tried, or tried again; null once it went out.';
COMMENT ON COLUMN han_solo.findings.alerted_as IS
    'The severity that was told; a warning that becomes critical is told once more.';

CREATE UNIQUE INDEX findings_one_open
    ON han_solo.findings (guard, agent_id, key)
    WHERE resolved_at IS NULL;

CREATE INDEX findings_by_agent ON han_solo.findings (agent_id, id);

-- The few whose alert is still to go out.
CREATE INDEX findings_alert_due
    ON han_solo.findings (agent_id, alert_due_at)
    WHERE alert_due_at IS NOT NULL;

CREATE TABLE han_solo.guard_runs (
    guard       text        NOT NULL CHECK (guard <> ''),
    agent_id    text        NOT NULL CHECK (agent_id <> ''),
    finished_at timestamptz NOT NULL,
    looked_at   timestamptz,
    duration_ms integer     NOT NULL CHECK (duration_ms >= 0),
    findings    integer     NOT NULL CHECK (findings >= 0),
    error       text,
    runs        bigint      NOT NULL DEFAULT 1 CHECK (runs > 0),
    PRIMARY KEY (guard, agent_id)
);

COMMENT ON TABLE han_solo.guard_runs IS 'The last run of each guard for each agent.';
COMMENT ON COLUMN han_solo.guard_runs.runs IS
    'How many there were: a look during which another was recorded is not recorded itself.';
COMMENT ON COLUMN han_solo.guard_runs.looked_at IS
    'When it last could look; older than finished_at while its check fails.';

CREATE TABLE han_solo.leaders (
    agent_name   text        PRIMARY KEY CHECK (agent_name <> ''),
    epoch        bigint      NOT NULL CHECK (epoch > 0),
    holder       text        NOT NULL CHECK (holder <> ''),
    elected_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL
);

COMMENT ON TABLE han_solo.leaders IS
    'Who runs the remedies of an agent. Each election adds one to the epoch, and the database takes
no remedy of an older one.';

CREATE TABLE han_solo.remedies (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    guard       text        NOT NULL CHECK (guard <> ''),
    agent_id    text        NOT NULL CHECK (agent_id <> ''),
    finding_ids bigint[]    NOT NULL CHECK (cardinality(finding_ids) > 0),
    epoch       bigint      NOT NULL CHECK (epoch > 0),
    started_at  timestamptz NOT NULL,
    finished_at timestamptz CHECK (finished_at >= started_at),
    outcome     text        CHECK (outcome IN ('done', 'no_effect', 'failed', 'abandoned')),
    what        text,
    CHECK ((finished_at IS NULL) = (outcome IS NULL))
);

COMMENT ON TABLE han_solo.remedies IS 'Each attempt to repair what a guard found.';
COMMENT ON COLUMN han_solo.remedies.outcome IS
    'done: the check then found nothing of it. no_effect: it still did. failed: the remedy raised.
abandoned: its process ended, or lost the lead, before it did. Null while it runs.';

-- Two remedies of one guard never overlap, whoever believes to lead.
CREATE UNIQUE INDEX remedies_one_running
    ON han_solo.remedies (guard, agent_id)
    WHERE finished_at IS NULL;

CREATE INDEX remedies_by_agent ON han_solo.remedies (agent_id, id);

CREATE FUNCTION han_solo.keep_finished() RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_LEVEL = 'ROW' AND OLD.finished_at IS NULL THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% of %.% is refused: what is finished is history and stays as it is',
        TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

COMMENT ON FUNCTION han_solo.keep_finished() IS
    'Lets a row be completed once, and nothing else.';

CREATE TRIGGER keep_finished_row
    BEFORE UPDATE OR DELETE ON han_solo.remedies
    FOR EACH ROW
    EXECUTE FUNCTION han_solo.keep_finished();
CREATE TRIGGER keep_finished
    BEFORE TRUNCATE ON han_solo.remedies
    FOR EACH STATEMENT
    EXECUTE FUNCTION han_solo.keep_finished();

ALTER TABLE han_solo.remedies
    ENABLE ALWAYS TRIGGER keep_finished_row;
ALTER TABLE han_solo.remedies
    ENABLE ALWAYS TRIGGER keep_finished;

CREATE TABLE han_solo.tool_snapshots (
    agent_id      text        NOT NULL CHECK (agent_id <> ''),
    tool_name     text        NOT NULL CHECK (tool_name <> ''),
    tool_id       text        NOT NULL CHECK (tool_id <> ''),
    server        text,
    seen_at       timestamptz NOT NULL,
    missing_since timestamptz CHECK (missing_since >= seen_at),
    PRIMARY KEY (agent_id, tool_name)
);

COMMENT ON TABLE han_solo.tool_snapshots IS
    'What was attached to each known agent when that was last looked at.';
COMMENT ON COLUMN han_solo.tool_snapshots.server IS 'The MCP server that owned the tool.';
COMMENT ON COLUMN han_solo.tool_snapshots.missing_since IS
    'When it was first found to be gone; null while it is attached.';

-- What follows is what jobs did.

CREATE TABLE han_solo.job_runs (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job           text        NOT NULL CHECK (job ~ '^[a-z][a-z0-9_]{0,47}$'),
    period        text        NOT NULL CHECK (period <> ''),
    due_at        timestamptz NOT NULL,
    is_extra      boolean     NOT NULL DEFAULT false,
    attempt       integer     NOT NULL CHECK (attempt > 0),
    started_by    text        NOT NULL CHECK (started_by IN ('schedule', 'person')),
    holder        text        NOT NULL CHECK (holder <> ''),
    started_at    timestamptz NOT NULL,
    heartbeat_at  timestamptz NOT NULL,
    lease_until   timestamptz NOT NULL,
    finished_at   timestamptz CHECK (finished_at >= started_at),
    outcome       text        CHECK (outcome IN ('succeeded', 'failed', 'timed_out', 'abandoned')),
    may_run_again boolean     NOT NULL DEFAULT true,
    evidence      jsonb,
    error         text,
    traceback     text,
    CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CHECK ((outcome = 'succeeded') = (evidence IS NOT NULL) OR outcome IS NULL),
    CHECK (outcome IS NULL OR outcome = 'succeeded' OR error IS NOT NULL)
);

COMMENT ON TABLE han_solo.job_runs IS 'One row for each run of a job, and the lease it runs under.';
COMMENT ON COLUMN han_solo.job_runs.period IS
    'The date of the due time in the zone of the settings, or the hour in UTC.';
COMMENT ON COLUMN han_solo.job_runs.is_extra IS
    'A person had it run again although the period has its success.';
COMMENT ON COLUMN han_solo.job_runs.lease_until IS
    'Past, and not finished: its process died. The next start closes the row as abandoned.';
COMMENT ON COLUMN han_solo.job_runs.may_run_again IS
    'Whether it may run again by itself after this outcome.';

-- One at a time, whoever starts it and where.
CREATE UNIQUE INDEX job_runs_one_running
    ON han_solo.job_runs (job)
    WHERE finished_at IS NULL;

CREATE UNIQUE INDEX job_runs_one_success
    ON han_solo.job_runs (job, period)
    WHERE outcome = 'succeeded' AND NOT is_extra;

CREATE INDEX job_runs_by_job ON han_solo.job_runs (job, id);

CREATE TRIGGER keep_finished_row
    BEFORE UPDATE OR DELETE ON han_solo.job_runs
    FOR EACH ROW
    EXECUTE FUNCTION han_solo.keep_finished();
CREATE TRIGGER keep_finished
    BEFORE TRUNCATE ON han_solo.job_runs
    FOR EACH STATEMENT
    EXECUTE FUNCTION han_solo.keep_finished();

ALTER TABLE han_solo.job_runs
    ENABLE ALWAYS TRIGGER keep_finished_row;
ALTER TABLE han_solo.job_runs
    ENABLE ALWAYS TRIGGER keep_finished;

-- What follows is who watches.

CREATE TABLE han_solo.daemons (
    holder       text        NOT NULL CHECK (holder <> ''),
    agent_name   text        NOT NULL CHECK (agent_name <> ''),
    state        text        NOT NULL CHECK (state IN ('leading', 'spare', 'stopped')),
    epoch        bigint      CHECK (epoch > 0),
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    PRIMARY KEY (holder, agent_name),
    CHECK ((state = 'leading') = (epoch IS NOT NULL))
);

COMMENT ON TABLE han_solo.daemons IS
    'One row for each daemon; one whose heartbeat is old is gone, whatever its state says.';

-- What follows is what model switches did.

CREATE TABLE han_solo.switches (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    switch_id   uuid        NOT NULL UNIQUE,
    agent_name  text        NOT NULL CHECK (agent_name <> ''),
    agent_id    text        NOT NULL CHECK (agent_id <> ''),
    is_back     boolean     NOT NULL,
    from_handle text        NOT NULL,
    to_handle   text        NOT NULL CHECK (to_handle <> ''),
    spec_handle text        NOT NULL,
    old_config  jsonb       NOT NULL,
    new_config  jsonb       NOT NULL,
    tool_ids    text[]      NOT NULL,
    started_by  text        NOT NULL CHECK (started_by <> ''),
    started_at  timestamptz NOT NULL,
    finished_at timestamptz CHECK (finished_at >= started_at),
    outcome     text        CHECK (outcome IN ('done', 'returned', 'undone', 'abandoned')),
    error       text,
    CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CHECK ((outcome IS NULL OR outcome = 'done') = (error IS NULL))
);

COMMENT ON TABLE han_solo.switches IS
    'One row for each model switch, written before anything was changed.';
COMMENT ON COLUMN han_solo.switches.spec_handle IS 'What the agent spec named at that time.';
COMMENT ON COLUMN han_solo.switches.tool_ids IS 'What was attached before.';
COMMENT ON COLUMN han_solo.switches.outcome IS
    'done: the new model answered. returned: it did not, and the old configuration is back. undone:
its process died, and the next start put the old configuration back. abandoned: somebody else changed
the agent meanwhile, or it is gone, so nothing was touched. Null while it is under way.';

CREATE UNIQUE INDEX switches_one_open
    ON han_solo.switches (agent_id)
    WHERE finished_at IS NULL;

CREATE INDEX switches_by_agent ON han_solo.switches (agent_id, id);

CREATE TABLE han_solo.switch_steps (
    switch_id   uuid        NOT NULL REFERENCES han_solo.switches (switch_id),
    position    integer     NOT NULL CHECK (position >= 0),
    step        text        NOT NULL CHECK (
        step IN ('config', 'tools', 'canary', 'config_back', 'tools_back')
    ),
    intended_at timestamptz NOT NULL,
    finished_at timestamptz CHECK (finished_at >= intended_at),
    outcome     text        CHECK (outcome IN ('done', 'failed')),
    detail      jsonb       NOT NULL DEFAULT '{}',
    PRIMARY KEY (switch_id, position),
    CHECK ((finished_at IS NULL) = (outcome IS NULL))
);

COMMENT ON TABLE han_solo.switch_steps IS
    'Each step of a switch: noted before it is taken, and again once it was read back.';

CREATE TABLE han_solo.canaries (
    agent_id  text        PRIMARY KEY CHECK (agent_id <> ''),
    owner_id  text        NOT NULL CHECK (owner_id <> ''),
    switch_id uuid        NOT NULL REFERENCES han_solo.switches (switch_id),
    made_at   timestamptz NOT NULL,
    ended_at  timestamptz CHECK (ended_at >= made_at)
);

COMMENT ON TABLE han_solo.canaries IS
    'Agents that try a model at a switch. The bridge lets none of them write, for ever: a call of one
may arrive after its end.';
COMMENT ON COLUMN han_solo.canaries.owner_id IS 'The agent for which the model is tried.';

CREATE INDEX canaries_left ON han_solo.canaries (owner_id) WHERE ended_at IS NULL;

CREATE TRIGGER keep_finished_row
    BEFORE UPDATE OR DELETE ON han_solo.switches
    FOR EACH ROW
    EXECUTE FUNCTION han_solo.keep_finished();
CREATE TRIGGER keep_finished
    BEFORE TRUNCATE ON han_solo.switches
    FOR EACH STATEMENT
    EXECUTE FUNCTION han_solo.keep_finished();

ALTER TABLE han_solo.switches
    ENABLE ALWAYS TRIGGER keep_finished_row;
ALTER TABLE han_solo.switches
    ENABLE ALWAYS TRIGGER keep_finished;

CREATE TRIGGER keep_finished_row
    BEFORE UPDATE OR DELETE ON han_solo.switch_steps
    FOR EACH ROW
    EXECUTE FUNCTION han_solo.keep_finished();
CREATE TRIGGER keep_finished
    BEFORE TRUNCATE ON han_solo.switch_steps
    FOR EACH STATEMENT
    EXECUTE FUNCTION han_solo.keep_finished();

ALTER TABLE han_solo.switch_steps
    ENABLE ALWAYS TRIGGER keep_finished_row;
ALTER TABLE han_solo.switch_steps
    ENABLE ALWAYS TRIGGER keep_finished;

-- What follows are the transcripts.

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
    passage_ids bigint[]    NOT NULL,
    linked_ids  bigint[]    NOT NULL DEFAULT '{}'
);

COMMENT ON TABLE memory.searches IS
    'Every search, with the passages it returned, best first; none where it found nothing.';

CREATE INDEX searches_by_time ON memory.searches (at);
COMMENT ON COLUMN memory.searches.linked_ids IS
    'The passages that were shown because those found are linked with them.';

CREATE INDEX searches_by_passage ON memory.searches USING gin (passage_ids);
CREATE INDEX searches_by_linked ON memory.searches USING gin (linked_ids)
    WHERE cardinality(linked_ids) > 0;

CREATE TABLE memory.passage_uses (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    search_id  bigint      REFERENCES memory.searches (id) ON DELETE CASCADE,
    passage_id bigint      NOT NULL REFERENCES memory.passages (id) ON DELETE CASCADE,
    kind       text        NOT NULL CHECK (kind IN ('read', 'used', 'not_used')),
    note       text        NOT NULL DEFAULT '' CHECK (char_length(note) <= 500),
    principal  text        NOT NULL CHECK (principal <> ''),
    agent_id   text        CHECK (agent_id <> ''),
    at         timestamptz NOT NULL,
    CONSTRAINT passage_uses_verdict CHECK (kind = 'read' OR search_id IS NOT NULL)
);

COMMENT ON TABLE memory.passage_uses IS
    'What became of passages: read whole, or said to have been of use or of none.';

CREATE INDEX passage_uses_by_passage ON memory.passage_uses (passage_id, at);
CREATE UNIQUE INDEX passage_uses_one_verdict ON memory.passage_uses (search_id, passage_id)
    WHERE kind <> 'read';
CREATE INDEX passage_uses_by_time ON memory.passage_uses (at);

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
