-- name: put
-- One that is there already is marked as used, once an hour at most: all runs of a program share its row.
INSERT INTO programs AS p (project, hash, text, used_at) VALUES ($1, $2, $3, (SELECT weft_now()))
ON CONFLICT (project, hash) DO UPDATE SET used_at = excluded.used_at
WHERE p.used_at < excluded.used_at - interval '1 hour'

-- name: get
SELECT text FROM programs WHERE project = $1 AND hash = $2
