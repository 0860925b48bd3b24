-- name: find
SELECT id, name FROM projects WHERE key = $1

-- name: add
INSERT INTO projects (key, name) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING

-- name: rename
UPDATE projects SET name = $2 WHERE key = $1
