-- name: take
-- Step 4 with SKIP LOCKED, then step 3 with SKIP LOCKED: the rows whose turn it is, each with the run that it names and
-- every wait for that; `held` says whether the run that waits is now the caller's to let go on. One snapshot shows a row and
-- all that was committed with it or before it. The OFFSET keeps the search one by one: joined, it read all such waits.
-- $1 limit
WITH taken AS MATERIALIZED (
    SELECT project, id, run FROM outbox WHERE due <= (SELECT weft_now()) ORDER BY due LIMIT $1
    FOR UPDATE SKIP LOCKED
)
SELECT t.project, t.id, t.run AS ended, r.status, coalesce(r.reason, r.error) AS reason,
       r.id IS NOT NULL AND r.ended_at IS NULL AS live, r.parent IS NOT NULL AS announces, held.yes AS held,
       w.run, w.node, w.frames, w.call, w.part, w.token, w.kind, w.spec, w.mode, w.target, w.due, w.registered_at
FROM taken AS t
LEFT JOIN LATERAL (SELECT u.*, s.parent
                   FROM runs AS u JOIN scopes AS s ON s.project = u.project AND s.id = u.id
                   WHERE u.project = t.project AND u.id = t.run LIMIT 1) AS r ON true
LEFT JOIN LATERAL (SELECT * FROM waits WHERE project = t.project AND target = t.run OFFSET 0) AS w ON true
LEFT JOIN LATERAL (SELECT true AS yes FROM runs
                   WHERE project = w.project AND id = w.run AND ended_at IS NULL
                   FOR NO KEY UPDATE SKIP LOCKED) AS held ON true

-- name: done
-- Step 4, rows that the caller holds. $1..$2 projects, ids
DELETE FROM outbox AS o USING unnest($1::integer[], $2::bigint[]) AS d (project, id)
WHERE o.project = d.project AND o.id = d.id

-- name: postpone
-- Step 4, rows that the caller holds. $1..$2 projects, ids; $3 for how long
UPDATE outbox AS o SET due = (SELECT weft_now()) + $3::interval
FROM unnest($1::integer[], $2::bigint[]) AS d (project, id)
WHERE o.project = d.project AND o.id = d.id
