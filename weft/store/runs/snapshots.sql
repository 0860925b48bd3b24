-- name: put
-- A later one stands. Only for what the journal holds, and while the run lives.
-- $1 project, $2 run, $3 lease, $4 after, $5 state
INSERT INTO snapshots (project, run, after, state)
SELECT project, id, $4, $5 FROM runs
WHERE project = $1 AND id = $2 AND lease = $3 AND ended_at IS NULL AND next_seq > $4
ON CONFLICT (project, run) DO UPDATE SET after = excluded.after, state = excluded.state
WHERE excluded.after > snapshots.after

-- name: resume
-- The snapshot as a row without events, if there is one, then the journal from there on.
WITH known AS MATERIALIZED (
    SELECT after, state FROM snapshots WHERE project = $1 AND run = $2
), start AS MATERIALIZED (
    SELECT coalesce((SELECT after FROM known), 0) AS after
)
(SELECT after AS first, 0 AS count, '-infinity'::timestamptz AS at, state AS events FROM known)
UNION ALL
(SELECT first, count, at, events FROM journal
 WHERE project = $1 AND run = $2
   AND first >= (SELECT coalesce(max(first), 1) FROM journal
                 WHERE project = $1 AND run = $2 AND first <= (SELECT after FROM start) + 1)
   AND first + count > (SELECT after FROM start) + 1
 ORDER BY first)
