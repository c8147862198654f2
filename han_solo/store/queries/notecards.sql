-- name: insert_notecard(text, creator, source, principal, agent_id, at)^
-- Add an active notecard and return it as it was stored.
INSERT INTO memory.notecards (
    text, creator, source, principal, agent_id, created_at, status_changed_at, status_changed_by
)
VALUES (:text, :creator, :source, :principal, :agent_id, :at, :at, :principal)
RETURNING
    id, text, creator, status, source, principal, agent_id, created_at, status_changed_at,
    status_changed_by;

-- name: fetch_notecard(notecard_id)^
-- Read one notecard, whatever its status.
SELECT
    id, text, creator, status, source, principal, agent_id, created_at, status_changed_at,
    status_changed_by
FROM memory.notecards
WHERE id = :notecard_id;

-- name: list_notecards(statuses, before_id, limit_rows)
-- List notecards of the given statuses, newest first, older than the cursor.
SELECT
    id, text, creator, status, source, principal, agent_id, created_at, status_changed_at,
    status_changed_by
FROM memory.notecards
WHERE status = ANY (:statuses::text[])
    AND id < :before_id
ORDER BY id DESC
LIMIT :limit_rows;

-- name: list_made(since, until)
-- List the notecards made in a stretch of time, oldest first.
SELECT created_at, creator, text
FROM memory.notecards
WHERE created_at >= :since
    AND created_at < :until
ORDER BY id
LIMIT 200;

-- name: change_status(notecard_id, from_statuses, to_status, principal, at)^
-- Move a notecard to a status if it stands in one of those it may be moved from.
UPDATE memory.notecards
SET
    status = :to_status,
    status_changed_at = :at,
    status_changed_by = :principal
WHERE id = :notecard_id
    AND status = ANY (:from_statuses::text[])
RETURNING
    id, text, creator, status, source, principal, agent_id, created_at, status_changed_at,
    status_changed_by;
