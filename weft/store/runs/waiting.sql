-- Read-only: what people read of runs that wait. Nothing here locks.

-- name: tree
-- The run and what still lives below it, from above. $1 project, $2 run, $3 limit
WITH RECURSIVE below AS (
    SELECT project, id, 0 AS level FROM scopes WHERE project = $1 AND id = $2
    UNION ALL
    SELECT c.project, c.id, b.level + 1 FROM below AS b
    JOIN scopes AS c ON c.project = b.project AND c.parent = b.id AND c.ended_at IS NULL
)
SELECT r.project, r.id AS run, s.parent, b.level, r.entry, r.status, r.open_firings::text, s.effective_deadline AS deadline,
       w.number AS worker, w.host, w.pid
FROM below AS b
JOIN scopes AS s ON s.project = b.project AND s.id = b.id
JOIN runs AS r ON r.project = b.project AND r.id = b.id
LEFT JOIN workers AS w ON w.id = r.worker
ORDER BY b.level, r.id LIMIT $3

-- name: waits_of
-- $1 project, $2 runs
SELECT w.project, w.run, w.node, w.frames, w.call, w.part, w.token, w.kind, w.spec, w.mode, w.target, w.due, w.registered_at
FROM unnest($2::uuid[]) AS r (id)
JOIN waits AS w ON w.project = $1 AND w.run = r.id
ORDER BY w.registered_at, w.run, w.node, w.frames, w.call, w.part
