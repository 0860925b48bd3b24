-- name: depths
-- The depth of a scope never changes, so it is read without a lock.
SELECT id, depth FROM scopes WHERE project = $1 AND id = ANY ($2::uuid[])

-- name: lock_level
-- Step 2, FOR UPDATE: the given scopes and the children of those above. A new statement a level, so that it sees every
-- child that was committed before the level above was locked; after that none can be made.
SELECT id, parent, has_children, ended_at IS NULL AS live FROM scopes
WHERE project = $1
  AND id IN (SELECT unnest($2::uuid[])
             UNION ALL
             SELECT c.id FROM scopes AS c WHERE c.project = $1 AND c.parent = ANY ($3::uuid[]))
ORDER BY depth, id
FOR UPDATE

-- name: lock_runs
-- Step 3, FOR UPDATE. In a statement after the scopes' locks; what it returns is final.
SELECT id, worker, lease, next_seq, open_firings FROM runs
WHERE project = $1 AND id = ANY ($2::uuid[]) AND ended_at IS NULL
ORDER BY id
FOR UPDATE

-- name: end
-- Step 4, below locks of 2 and 3 that the caller holds.
-- $1 project; $2..$7 one entry a run: runs, by whom, statuses, reasons, causes, errors; $8 numbers of events
WITH ending AS MATERIALIZED (
    SELECT * FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::json[], $7::text[], $8::integer[])
        AS e (run, by, status, reason, cause, error, events)
), now AS MATERIALIZED (
    SELECT weft_now() AS at
), ended_runs AS (
    UPDATE runs AS r
    SET status = e.status, reason = e.reason, cause = e.cause, error = e.error, ended_at = now.at,
        next_seq = r.next_seq + e.events, open_firings = '[]'
    FROM ending AS e, now
    WHERE r.project = $1 AND r.id = e.run
), ended_scopes AS (
    UPDATE scopes AS s SET ended_at = now.at, ended_by = e.by FROM ending AS e, now
    WHERE s.project = $1 AND s.id = e.run
), untagged AS (
    UPDATE tags AS t SET live = false FROM ending AS e WHERE t.project = $1 AND t.run = e.run
)
DELETE FROM ready AS q USING ending AS e WHERE q.project = $1 AND q.run = e.run

-- name: tell
INSERT INTO notices (project, run, worker) SELECT $1, * FROM unnest($2::uuid[], $3::uuid[])
ON CONFLICT DO NOTHING

-- name: due_deadlines
SELECT project, id AS run FROM scopes
WHERE ended_at IS NULL AND effective_deadline <= (SELECT weft_now())
ORDER BY effective_deadline
LIMIT $1

-- name: next_due
-- $1 projects or null
SELECT least(
    (SELECT min(effective_deadline) FROM scopes WHERE effective_deadline IS NOT NULL AND ended_at IS NULL),
    (SELECT due FROM stops WHERE state = 'queued' AND ($1::integer[] IS NULL OR project = ANY ($1)) ORDER BY due LIMIT 1)
) - weft_now()
