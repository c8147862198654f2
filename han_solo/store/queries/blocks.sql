-- name: try_lock(block_id)$
-- Take a block's lock until the transaction ends, or say at once that someone has it.
SELECT pg_try_advisory_xact_lock(hashtextextended('han-solo core block ' || :block_id::text, 0));

-- name: limit_lock_wait(timeout)$
-- Set how long this transaction waits for a lock.
SELECT set_config('lock_timeout', :timeout::text, TRUE);

-- name: wait_lock(block_id)!
-- Take a block's lock until the transaction ends, in the order of asking.
SELECT pg_advisory_xact_lock(hashtextextended('han-solo core block ' || :block_id::text, 0));

-- name: fetch_open_intent(block_id)^
-- Read a block's open intent and its age.
SELECT
    intent_id, block_id, label, agent_id, base, value, sha256, author_kind, author, reason, origin,
    source, date_part('epoch', clock_timestamp() - created_at) AS age_s
FROM han_solo.block_intents
WHERE block_id = :block_id
    AND abandoned_at IS NULL;

-- name: list_heads(block_ids)
-- List the last version of each block and whether a write of it is open.
SELECT
    wanted.block_id,
    last.number,
    last.sha256,
    EXISTS (
        SELECT 1
        FROM han_solo.block_intents AS intent
        WHERE intent.block_id = wanted.block_id
            AND intent.abandoned_at IS NULL
    ) AS is_open
FROM pg_catalog.unnest(:block_ids::text[]) AS wanted (block_id)
LEFT JOIN memory.agent_core_block_versions AS last
    ON last.block_id = wanted.block_id
    AND last.number = (
        SELECT max(version.number)
        FROM memory.agent_core_block_versions AS version
        WHERE version.block_id = wanted.block_id
    );

-- name: insert_intent(intent_id, block_id, label, agent_id, base, value, sha256, author_kind, author, reason, origin, source)!
-- Note durably what is about to be sent to Letta.
INSERT INTO han_solo.block_intents (
    intent_id, block_id, label, agent_id, base, value, sha256, author_kind, author, reason, origin,
    source
)
VALUES (
    :intent_id, :block_id, :label, :agent_id, :base, :value, :sha256, :author_kind, :author,
    :reason, :origin, :source
);

-- name: delete_intent(intent_id)!
-- Forget an intent that certainly did not land.
DELETE FROM han_solo.block_intents
WHERE intent_id = :intent_id;

-- name: abandon_intent(intent_id)!
-- Close an intent that did not land as far as can be seen.
UPDATE han_solo.block_intents
SET abandoned_at = clock_timestamp()
WHERE intent_id = :intent_id
    AND abandoned_at IS NULL;

-- name: delete_old_intents(block_id, kept_s)!
-- Forget abandoned intents of a block that can no longer land.
DELETE FROM han_solo.block_intents
WHERE block_id = :block_id
    AND abandoned_at < clock_timestamp() - make_interval(secs => :kept_s::float8);

-- name: find_abandoned(block_id, sha256)^
-- Find an abandoned intent by the text it was to write.
SELECT
    intent_id, block_id, label, agent_id, base, value, sha256, author_kind, author, reason, origin,
    source, date_part('epoch', clock_timestamp() - created_at) AS age_s
FROM han_solo.block_intents
WHERE block_id = :block_id
    AND sha256 = :sha256
    AND abandoned_at IS NOT NULL
ORDER BY created_at DESC
LIMIT 1;

-- name: record_intent(intent_id, at)^
-- Turn an intent into the next version of its block.
WITH intent AS (
    DELETE FROM han_solo.block_intents
    WHERE intent_id = :intent_id
    RETURNING
        intent_id, block_id, label, agent_id, value, sha256, author_kind, author, reason, origin,
        source
)
INSERT INTO memory.agent_core_block_versions (
    block_id, number, label, agent_id, value, sha256, author_kind, author, reason, origin, source,
    intent_id, created_at
)
SELECT
    intent.block_id,
    (
        SELECT coalesce(max(version.number), 0) + 1
        FROM memory.agent_core_block_versions AS version
        WHERE version.block_id = intent.block_id
    ),
    intent.label,
    intent.agent_id,
    intent.value,
    intent.sha256,
    intent.author_kind,
    intent.author,
    intent.reason,
    intent.origin,
    intent.source,
    intent.intent_id,
    :at
FROM intent
RETURNING number;

-- name: insert_version(block_id, label, agent_id, value, sha256, author_kind, author, reason, origin, source, at)^
-- Add a text that was found in Letta as the next version of its block.
INSERT INTO memory.agent_core_block_versions (
    block_id, number, label, agent_id, value, sha256, author_kind, author, reason, origin, source,
    created_at
)
SELECT
    :block_id,
    coalesce(max(version.number), 0) + 1,
    :label,
    :agent_id,
    :value,
    :sha256,
    :author_kind,
    :author,
    :reason,
    :origin,
    :source::integer,
    :at
FROM memory.agent_core_block_versions AS version
WHERE version.block_id = :block_id
RETURNING number;

-- name: find_by_intent(intent_id)$
-- Find the version that an intent became.
SELECT number
FROM memory.agent_core_block_versions
WHERE intent_id = :intent_id;

-- name: find_by_text(block_id, sha256)$
-- Find the newest version of a block that held a text.
SELECT number
FROM memory.agent_core_block_versions
WHERE block_id = :block_id
    AND sha256 = :sha256
ORDER BY number DESC
LIMIT 1;

-- name: fetch_version(block_id, number)^
-- Read one version.
SELECT
    block_id, number, label, agent_id, sha256, char_length(value) AS length, author_kind, author,
    reason, origin, source, created_at, value
FROM memory.agent_core_block_versions
WHERE block_id = :block_id
    AND number = :number;

-- name: list_versions(block_id, before, limit_rows)
-- List versions without their texts, newest first, older than a number.
SELECT
    block_id, number, label, agent_id, sha256, char_length(value) AS length, author_kind, author,
    reason, origin, source, created_at
FROM memory.agent_core_block_versions
WHERE block_id = :block_id
    AND number < :before
ORDER BY number DESC
LIMIT :limit_rows;

-- name: list_texts(block_id, limit_rows)
-- List the newest versions with their texts alone.
SELECT number, value
FROM memory.agent_core_block_versions
WHERE block_id = :block_id
ORDER BY number DESC
LIMIT :limit_rows;

-- name: find_block(agent_id, label)$
-- Find the block that an agent had under a label when it was last written.
SELECT block_id
FROM memory.agent_core_block_versions
WHERE agent_id = :agent_id
    AND label = :label
ORDER BY created_at DESC
LIMIT 1;

-- name: find_former(agent_id, label, block_ids)^
-- Read the last text that an agent had under a label in a block other than those.
SELECT
    block_id, number, label, agent_id, sha256, char_length(value) AS length, author_kind, author,
    reason, origin, source, created_at, value
FROM memory.agent_core_block_versions
WHERE agent_id = :agent_id
    AND label = :label
    AND block_id <> ALL (:block_ids::text[])
    AND value ~ '\S'
ORDER BY created_at DESC, number DESC
LIMIT 1;
