-- name: insert_token(token_id, name, kind, scopes, secret_sha256, created_at, expires_at)^
-- Add a token; a live one of the same name is a unique violation.
INSERT INTO han_solo.tokens (id, name, kind, scopes, secret_sha256, created_at, expires_at)
VALUES (:token_id, :name, :kind, :scopes, :secret_sha256, :created_at, :expires_at)
RETURNING
    id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at;

-- name: fetch_token(token_id)^
-- Read a token by the id it carries.
SELECT id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at
FROM han_solo.tokens
WHERE id = :token_id;

-- name: fetch_live_token(name)^
-- Read the one token of that name that was not revoked; it may have expired.
SELECT id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at
FROM han_solo.tokens
WHERE name = :name
    AND revoked_at IS NULL;

-- name: list_tokens(with_ended, at)
-- List the tokens that can be used at that time, or all there ever were, by name and age.
SELECT id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at
FROM han_solo.tokens
WHERE :with_ended::boolean
    OR (
        (revoked_at IS NULL OR revoked_at > :at::timestamptz)
        AND (expires_at IS NULL OR expires_at > :at::timestamptz)
    )
ORDER BY name, created_at, id;

-- name: revoke_tokens(name_or_id, at)
-- End every token of that name or id that is not revoked yet, or is in its grace.
UPDATE han_solo.tokens
SET revoked_at = :at
WHERE (name = :name_or_id OR id = :name_or_id)
    AND (revoked_at IS NULL OR revoked_at > :at::timestamptz)
RETURNING
    id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at;

-- name: retire_token(token_id, revoked_at)^
-- End a token for its successor; only one caller at a time succeeds.
UPDATE han_solo.tokens
SET revoked_at = :revoked_at
WHERE id = :token_id
    AND revoked_at IS NULL
RETURNING
    id, name, kind, scopes, secret_sha256, created_at, expires_at, revoked_at, last_used_at;

-- name: revoke_expired(name, at)!
-- Free the name of a token that has expired, so that a new one may bear it.
UPDATE han_solo.tokens
SET revoked_at = :at
WHERE name = :name
    AND revoked_at IS NULL
    AND expires_at <= :at::timestamptz;

-- name: touch_token(token_id, at, not_since)!
-- Note that a token was used, unless another process noted it a moment ago.
UPDATE han_solo.tokens
SET last_used_at = :at
WHERE id = :token_id
    AND (last_used_at IS NULL OR last_used_at < :not_since::timestamptz);
