-- name: hold
-- Step 3, FOR NO KEY UPDATE: the owner's strength.
SELECT worker, lease, ended_at, next_seq FROM runs WHERE project = $1 AND id = $2 FOR NO KEY UPDATE

-- name: advance
UPDATE runs SET next_seq = next_seq + $3 WHERE project = $1 AND id = $2
