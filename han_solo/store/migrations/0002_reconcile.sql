-- The reconciler's journal, and what it must remember because Letta can not tell it.

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
