-- Ended trees that were kept for long enough. What a queued stop was asked by, or somebody still waits for, is kept.

-- name: bounds
-- What ended before an instant was started before it, so its id is below one. $1 how long runs are kept
SELECT at AS ended_before, weft_uuid_at((extract(epoch FROM at) * 1000000)::bigint, '0000000000000000') AS below
FROM (SELECT weft_now() - $1::interval AS at) AS kept

-- name: page
-- Runs in the order of their starts, each with whether it heads a tree that may go.
-- $1 project, $2 ended before, $3 ids below, $4 ids above, $5 limit
SELECT id, parent IS NULL AND coalesce(ended_at <= $2, false) AS may_go
FROM (SELECT id, parent, ended_at FROM scopes WHERE project = $1 AND id > $4 AND id < $3 ORDER BY id LIMIT $5) AS page

-- name: children
SELECT id FROM scopes WHERE project = $1 AND parent = ANY ($2::uuid[])

-- name: delete
-- Step 2 with SKIP LOCKED. From the leaves up: nothing that has a child goes, so nothing is deleted by its parent. The run
-- and what hangs on it go with the scope.
-- $1 project, $2 runs
WITH doomed AS MATERIALIZED (
    SELECT s.project, s.id FROM scopes AS s
    WHERE s.project = $1 AND s.id = ANY ($2::uuid[]) AND s.ended_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM scopes AS c WHERE c.project = s.project AND c.parent = s.id)
      AND NOT EXISTS (SELECT FROM stops AS a WHERE a.project = s.project AND a.run = s.id AND a.state = 'queued')
      AND NOT EXISTS (SELECT FROM waits AS w WHERE w.project = s.project AND w.target = s.id)
    FOR UPDATE OF s SKIP LOCKED
), unwritten AS (
    DELETE FROM journal AS j USING doomed AS d WHERE j.project = d.project AND j.run = d.id
), unheard AS (
    DELETE FROM notices AS n USING doomed AS d WHERE n.project = d.project AND n.run = d.id
)
DELETE FROM scopes AS s USING doomed AS d WHERE s.project = d.project AND s.id = d.id

-- name: count
-- $1 projects, $2 ended before, $3 ids below
WITH RECURSIVE doomed AS (
    SELECT s.project, s.id
    FROM unnest($1::integer[]) AS p (id)
    JOIN scopes AS s ON s.project = p.id AND s.id < $3 AND s.parent IS NULL AND s.ended_at <= $2
    UNION ALL
    SELECT c.project, c.id FROM doomed AS d JOIN scopes AS c ON c.project = d.project AND c.parent = d.id
)
SELECT r.project, count(*) AS runs, sum(r.next_seq - 1)::bigint AS events
FROM doomed AS d JOIN runs AS r ON r.project = d.project AND r.id = d.id
GROUP BY r.project ORDER BY r.project

-- name: forget_programs
-- Programs that no run has and that nobody has put for a day, which is twice as long as who put one relies on it.
-- $1 project, $2 how long runs are kept
DELETE FROM programs AS p
WHERE p.project = $1 AND p.used_at < (SELECT weft_now()) - greatest($2::interval, interval '1 day')
  AND p.hash NOT IN (SELECT program FROM runs WHERE project = $1)

-- name: make_periods
SELECT weft_make_journal_periods()

-- name: drop_periods
SELECT weft_drop_journal_periods()
