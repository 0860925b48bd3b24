-- Read-only: what people list and read of runs. Nothing here locks.
--
-- Run ids are UUIDv7, so the order of ids is the order of starts and a start time is a bound on ids. A page is found
-- project by project, newest first, each search led by an index that starts with the project.

-- name: all_projects
SELECT id, key, name FROM projects ORDER BY id

-- name: projects_called
-- $1: a project's key, else its name
SELECT id, key, name FROM projects WHERE key = $1 OR name = $1 ORDER BY (key = $1) DESC, id

-- name: page
-- The newest runs. $1 projects, $2 statuses or null, $3 the least id or null, $4 node or null, $5 limit, $6 offset
SELECT found.project, found.id
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT r.project, r.id FROM runs r
    WHERE r.project = p.id
      AND ($2::text[] IS NULL OR r.status = ANY ($2))
      AND ($3::uuid IS NULL OR r.id >= $3)
      AND ($4::text IS NULL OR EXISTS (
          SELECT FROM journal j CROSS JOIN json_array_elements(j.events) AS e (event)
          WHERE j.project = r.project AND j.run = r.id AND e.event ->> 'node' = $4))
    ORDER BY r.id DESC LIMIT $5::integer + $6::integer
) found
ORDER BY found.id DESC LIMIT $5 OFFSET $6

-- name: page_live
-- The same, of runs that have something to do: found by the small table of those, not among all that ever ran.
SELECT r.project, r.id
FROM ready w JOIN runs r ON r.project = w.project AND r.id = w.run
WHERE w.project = ANY ($1::integer[])
  AND r.status = ANY ($2::text[])
  AND ($3::uuid IS NULL OR r.id >= $3)
  AND ($4::text IS NULL OR EXISTS (
      SELECT FROM journal j CROSS JOIN json_array_elements(j.events) AS e (event)
      WHERE j.project = r.project AND j.run = r.id AND e.event ->> 'node' = $4))
ORDER BY r.id DESC LIMIT $5::integer OFFSET $6::integer

-- name: page_waiting
-- The same, of runs that wait: found by what they wait for.
SELECT found.project, found.id
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT r.project, r.id
    FROM (SELECT DISTINCT run FROM waits WHERE project = p.id AND ($3::uuid IS NULL OR run >= $3) ORDER BY run DESC) AS w
    JOIN LATERAL (SELECT project, id, status FROM runs WHERE project = p.id AND id = w.run LIMIT 1) AS r ON true
    WHERE r.status = ANY ($2::text[])
      AND ($4::text IS NULL OR EXISTS (
          SELECT FROM journal j CROSS JOIN json_array_elements(j.events) AS e (event)
          WHERE j.project = r.project AND j.run = r.id AND e.event ->> 'node' = $4))
    ORDER BY w.run DESC LIMIT $5::integer + $6::integer
) found
ORDER BY found.id DESC LIMIT $5 OFFSET $6

-- name: page_tagged
-- The same, of runs that carry every tag of $7, found by the first of them.
SELECT found.project, found.id
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT r.project, r.id
    FROM tags t JOIN runs r ON r.project = t.project AND r.id = t.run
    WHERE t.project = p.id AND t.tag = ($7::text[])[1]
      AND ($2::text[] IS NULL OR r.status = ANY ($2))
      AND ($3::uuid IS NULL OR t.run >= $3)
      AND NOT EXISTS (
          SELECT FROM unnest(($7::text[])[2:]) AS other (tag)
          WHERE NOT EXISTS (
              SELECT FROM tags o WHERE o.project = t.project AND o.tag = other.tag AND o.run = t.run))
      AND ($4::text IS NULL OR EXISTS (
          SELECT FROM journal j CROSS JOIN json_array_elements(j.events) AS e (event)
          WHERE j.project = r.project AND j.run = r.id AND e.event ->> 'node' = $4))
    ORDER BY t.run DESC LIMIT $5::integer + $6::integer
) found
ORDER BY found.id DESC LIMIT $5 OFFSET $6

-- name: rows
-- Runs by ($1 project, $2 id), in the order given
SELECT r.project, r.id AS run, p.key AS project_key, p.name AS project_name, r.status, r.started_at, r.ended_at,
       r.entry, r.program, r.reason, r.error,
       coalesce((SELECT array_agg(t.tag ORDER BY t.number) FROM tags t
                 WHERE t.project = r.project AND t.run = r.id), '{}') AS tags
FROM unnest($1::integer[], $2::uuid[]) WITH ORDINALITY AS wanted (project, id, position)
JOIN runs r ON r.project = wanted.project AND r.id = wanted.id
JOIN projects p ON p.id = r.project
ORDER BY wanted.position

-- name: least_id
-- The id that a run started at $1 has at least
SELECT weft_uuid_at((extract(epoch FROM $1::timestamptz) * 1000000)::bigint, '0000000000000000')

-- name: between
-- Runs of $1 whose ids lie between two, the newest $4
SELECT found.project, found.id
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT r.project, r.id FROM runs r
    WHERE r.project = p.id AND r.id BETWEEN $2::uuid AND $3::uuid
    ORDER BY r.id DESC LIMIT $4
) found
ORDER BY found.id DESC LIMIT $4

-- name: ending_with
-- Runs whose ids end with $2, the newest $4; looked for among the newest $3 of each project alone, since no index has
-- ids by their ends (it would cost every start a random page)
SELECT found.project, found.id
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT recent.project, recent.id
    FROM (SELECT r.project, r.id FROM runs r WHERE r.project = p.id ORDER BY r.id DESC LIMIT $3) recent
    WHERE right(recent.id::text, length($2::text)) = $2
    LIMIT $4
) found
ORDER BY found.id DESC LIMIT $4

-- name: whole_ids
-- Those of the runs $2 that exist in the projects $1, in the order given
SELECT r.project, r.id
FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, position)
JOIN unnest($1::integer[]) AS p (id) ON true
JOIN runs r ON r.project = p.id AND r.id = wanted.id
ORDER BY wanted.position

-- name: journal_page
-- Packed rows after event number $3, at most $4
SELECT first, at, events FROM journal
WHERE project = $1 AND run = $2 AND first > $3
ORDER BY first LIMIT $4

-- name: before_row_of
-- The number before the first event of the packed row that holds event $3
SELECT coalesce(max(first), 1) - 1 FROM journal WHERE project = $1 AND run = $2 AND first <= $3

-- name: aftermath_page
-- What came after the end, after number $3
SELECT number, at, event FROM run_aftermath
WHERE project = $1 AND run = $2 AND number > $3
ORDER BY number LIMIT 1000

-- name: live_tagged
-- Live runs of project $1 that carry tag $2, oldest tag first
SELECT run FROM tags WHERE project = $1 AND tag = $2 AND live ORDER BY number

-- name: about_database
SELECT current_setting('server_version') AS version, current_database() AS name,
       pg_database_size(current_database()) AS bytes
