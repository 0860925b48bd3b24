-- name: add
INSERT INTO tokens (hash, name, project, tag, rights, created_at) VALUES ($1, $2, $3, $4, $5, weft_now())
RETURNING id, name, project, tag, rights, created_at, revoked_at

-- name: all
SELECT id, name, project, tag, rights, created_at, revoked_at FROM tokens ORDER BY id

-- name: revoke
UPDATE tokens SET revoked_at = weft_now() WHERE id = $1 AND revoked_at IS NULL

-- name: exists
SELECT EXISTS (SELECT FROM tokens WHERE id = $1)

-- name: find
SELECT id, name, project, tag, rights, created_at, revoked_at FROM tokens WHERE hash = $1 AND revoked_at IS NULL
