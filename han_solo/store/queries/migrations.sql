-- name: fetch_ledger_exists()$
-- Say whether the ledger of migrations is there yet.
SELECT to_regclass('han_solo.migrations') IS NOT NULL;

-- name: list_applied()
-- List what was applied, oldest first.
SELECT version, name, checksum, applied_at, applied_by
FROM han_solo.migrations
ORDER BY version;

-- name: insert_applied(version, name, checksum, applied_by)!
-- Note a migration as applied, in the transaction that applies it.
INSERT INTO han_solo.migrations (version, name, checksum, applied_by)
VALUES (:version, :name, :checksum, :applied_by);

-- name: notice_dead_client()$
-- Have the server look every two seconds whether this session's client still lives.
SELECT set_config('client_connection_check_interval', '2s', FALSE);

-- name: try_lock(key)$
-- Take the migration lock for this session, or say that it is taken.
SELECT pg_try_advisory_lock(:key::bigint);

-- name: unlock(key)$
-- Give the migration lock back.
SELECT pg_advisory_unlock(:key::bigint);

-- name: find_lock_holder(key)^
-- Find the session that holds the lock; a bigint key is split over classid and objid.
SELECT held.pid, session.application_name, session.usename, session.backend_start
FROM pg_catalog.pg_locks AS held
LEFT JOIN pg_catalog.pg_stat_activity AS session ON session.pid = held.pid
WHERE held.locktype = 'advisory'
    AND held.granted
    AND held.objsubid = 1
    AND held.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    AND (held.classid::bigint << 32) | held.objid::bigint = :key::bigint;

-- name: fetch_server()^
-- Read what decides whether the schema can be made here at all.
SELECT
    current_setting('server_encoding') AS encoding,
    current_user AS role,
    EXISTS (SELECT 1 FROM pg_catalog.pg_extension WHERE extname = 'vector') AS has_vector,
    EXISTS (
        SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'vector'
    ) AS vector_available;

-- name: create_vector_extension()!
-- Make the type vector; needs the right to, which a plain role has not.
CREATE EXTENSION IF NOT EXISTS vector;
