-- What jobs did: each run with its lease, its outcome and its evidence.

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
