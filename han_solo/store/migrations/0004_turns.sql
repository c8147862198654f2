-- Turns of the agents: who waits for the floor, who has it, and what came of each.
-- No text of a message is here: what was said is Letta's to keep.

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
