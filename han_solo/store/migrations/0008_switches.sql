-- Model switches: what was to be done before it was done, and the throw-away agents that try a model.

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
