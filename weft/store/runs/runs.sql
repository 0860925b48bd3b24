-- name: start
-- One statement for a batch: nothing is visible before all of it is. Locks nothing that stood before; the scope above,
-- if there is one, is locked by the caller (step 2).
-- $1 project, $2 worker, $3 scope above, $4 depth, $5 deadline of the scope above,
-- $6 programs, $7 entries, $8 numbers of events, $9 open firings, $10 times allowed, $11..$14 journal rows
WITH new AS MATERIALIZED (
    SELECT weft_run_id() AS id, n.ord, n.program, n.entry, n.events, n.open, n.allowed, now.at
    FROM (SELECT weft_now() AS at) AS now,
         unnest($6::text[], $7::text[], $8::integer[], $9::json[], $10::interval[])
             WITH ORDINALITY AS n (program, entry, events, open, allowed, ord)
), driver AS MATERIALIZED (
    SELECT id FROM workers WHERE id = $2 AND ended_at IS NULL
), new_scopes AS (
    INSERT INTO scopes (project, id, parent, depth, effective_deadline)
    SELECT $1, id, $3, $4, least(at + allowed, $5) FROM new
), new_runs AS (
    INSERT INTO runs (project, id, program, entry, started_at, status, worker, lease, next_seq, open_firings)
    SELECT $1, id, program, entry, at,
           CASE WHEN EXISTS (SELECT FROM driver) THEN 'running' ELSE 'queued' END,
           (SELECT id FROM driver),
           CASE WHEN EXISTS (SELECT FROM driver) THEN 1 ELSE 0 END,
           1 + events, open
    FROM new
), new_ready AS (
    INSERT INTO ready (project, run, worker) SELECT $1, id, (SELECT id FROM driver) FROM new
), new_journal AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT $1, new.id, 1 + j.start, j.count, new.at, j.events
    FROM unnest($11::integer[], $12::integer[], $13::integer[], $14::json[]) AS j (owner, start, count, events)
    JOIN new ON new.ord = j.owner
)
SELECT id FROM new ORDER BY ord

-- name: lock_above
-- Step 2, FOR KEY SHARE: an end of this scope waits, its owner's commits do not.
SELECT depth, effective_deadline, has_children, ended_at FROM scopes
WHERE project = $1 AND id = $2 FOR KEY SHARE

-- name: mark_above
-- Step 2, FOR NO KEY UPDATE, once in a scope's life.
UPDATE scopes SET has_children = true WHERE project = $1 AND id = $2 AND NOT has_children

-- name: claim
-- Steps 3 and 4, both with SKIP LOCKED: a run that is being ended is passed over, and nobody is waited for. The ready list
-- leads: joined in one piece, the search went through all runs that ever were, in the order of their ids.
-- $1 worker, $2 projects, $3 limit, $4 the runs to choose from (null: any), $5 from how many deaths on a run is suspect,
-- $6 whether such are wanted, or all the others
WITH picked AS MATERIALIZED (
    SELECT waiting.project, waiting.run, waiting.deaths
    FROM (SELECT project FROM unnest($2::integer[]) AS project ORDER BY random()) AS served,
         LATERAL (SELECT r.project, r.run, r.deaths FROM ready AS r
                  WHERE r.project = served.project AND r.worker IS NULL AND ($4::uuid[] IS NULL OR r.run = ANY ($4))
                    AND (r.deaths >= $5) = $6
                  ORDER BY r.run LIMIT $3
                  FOR UPDATE SKIP LOCKED) AS waiting,
         LATERAL (SELECT FROM runs AS u
                  WHERE u.project = waiting.project AND u.id = waiting.run AND u.ended_at IS NULL
                  FOR NO KEY UPDATE SKIP LOCKED) AS live
    WHERE EXISTS (SELECT FROM workers WHERE id = $1 AND ended_at IS NULL)
    LIMIT $3
), taken AS (
    UPDATE ready AS r SET worker = $1 FROM picked AS p WHERE r.project = p.project AND r.run = p.run
)
UPDATE runs AS u SET worker = $1, lease = u.lease + 1, status = 'running'
FROM picked AS p
WHERE u.project = p.project AND u.id = p.run
RETURNING u.project, u.id AS run, u.lease, u.program, u.next_seq, p.deaths

-- name: release
-- Steps 3 and 4. $1..$4 the fences: projects, runs, workers, leases
WITH mine AS MATERIALIZED (
    SELECT u.project, u.id
    FROM unnest($1::integer[], $2::uuid[], $3::uuid[], $4::integer[]) AS f (project, run, worker, lease)
    JOIN runs AS u ON u.project = f.project AND u.id = f.run AND u.worker = f.worker AND u.lease = f.lease
    WHERE u.ended_at IS NULL
    ORDER BY u.id
    FOR NO KEY UPDATE OF u
), freed AS (
    UPDATE ready AS r SET worker = NULL FROM mine AS m WHERE r.project = m.project AND r.run = m.id
)
UPDATE runs AS u SET worker = NULL, status = 'queued' FROM mine AS m WHERE u.project = m.project AND u.id = m.id

-- name: owned
SELECT q.project, q.run, r.lease, r.program, r.next_seq, q.deaths
FROM ready AS q,
     LATERAL (SELECT lease, program, next_seq FROM runs
              WHERE project = q.project AND id = q.run AND worker = $1 AND ended_at IS NULL
              LIMIT 1) AS r
WHERE q.worker = $1

-- name: open_firings
SELECT open_firings FROM runs WHERE project = $1 AND id = $2

-- name: status
SELECT status, worker, lease, next_seq, started_at, ended_at, reason, cause, error, program, entry
FROM runs WHERE project = $1 AND id = $2
