-- What guards found, what was done about it, and what they need to know of better days.

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
