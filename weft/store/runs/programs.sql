-- name: put
INSERT INTO programs (project, hash, text) VALUES ($1, $2, $3) ON CONFLICT (project, hash) DO NOTHING

-- name: get
SELECT text FROM programs WHERE project = $1 AND hash = $2
