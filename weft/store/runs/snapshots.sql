-- name: put
-- A later one stands. Only for what the journal holds, and while the run lives.
-- $1 project, $2 run, $3 lease, $4 after, $5 state
INSERT INTO snapshots (project, run, after, state)
SELECT project, id, $4, $5 FROM runs
WHERE project = $1 AND id = $2 AND lease = $3 AND ended_at IS NULL AND next_seq > $4
ON CONFLICT (project, run) DO UPDATE SET after = excluded.after, state = excluded.state
WHERE excluded.after > snapshots.after

-- name: resume
-- Of each run its snapshot, as a row without events, if there is one, then its journal from there on. A run's rows are searched
-- one run after another, each in its partition. $1..$2 one entry a run: projects, runs
SELECT a.run, j.first, j.count, j.at, j.events
FROM unnest($1::integer[], $2::uuid[]) WITH ORDINALITY AS a (project, run, ord)
LEFT JOIN LATERAL (SELECT after, state FROM snapshots WHERE project = a.project AND run = a.run LIMIT 1) AS s ON true,
LATERAL (
    SELECT s.after AS first, 0 AS count, '-infinity'::timestamptz AS at, s.state AS events, 0 AS place WHERE s.after IS NOT NULL
    UNION ALL
    SELECT first, count, at, events, 1 FROM journal
    WHERE project = a.project AND run = a.run
      AND first >= (SELECT coalesce(max(first), 1) FROM journal
                    WHERE project = a.project AND run = a.run AND first <= coalesce(s.after, 0) + 1)
      AND first + count > coalesce(s.after, 0) + 1
) AS j
ORDER BY a.ord, j.place, j.first
