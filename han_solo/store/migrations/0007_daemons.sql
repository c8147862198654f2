-- Daemons that run, the leader and its spares.

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
