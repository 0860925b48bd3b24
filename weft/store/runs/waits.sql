-- name: secret
SELECT key FROM secret

-- name: now
SELECT weft_now()

-- name: find
-- A token leads to its run; which project that is in, each is asked.
-- $1 run, $2 token
SELECT w.project, w.run, w.node, w.frames, w.call, w.part, w.token, w.kind, w.spec, w.mode, w.target, w.due, w.registered_at
FROM projects AS p,
     LATERAL (SELECT * FROM waits WHERE project = p.id AND run = $1 AND token = $2 LIMIT 1) AS w

-- name: of_run
SELECT project, run, node, frames, call, part, token, kind, spec, mode, target, due, registered_at FROM waits
WHERE project = $1 AND run = $2
ORDER BY registered_at, node, frames, call, part

-- name: forms
-- The inbox, the longest waiting first. $1 projects, $2 and $3 the last seen: registered_at and token, or null; $4 limit
SELECT f.project, f.run, f.node, f.frames, f.call, f.part, f.token, f.kind, f.spec, f.mode, f.target, f.due,
       f.registered_at
FROM unnest($1::integer[]) AS p (id)
CROSS JOIN LATERAL (
    SELECT * FROM waits AS w
    WHERE w.project = p.id AND w.kind = 'form'
      AND ($2::timestamptz IS NULL OR w.registered_at >= $2)
      AND ($2::timestamptz IS NULL OR (w.registered_at, w.token) > ($2, $3::text))
    ORDER BY w.registered_at, w.token LIMIT $4
) AS f
ORDER BY f.registered_at, f.token LIMIT $4

-- name: due
-- Step 3 with SKIP LOCKED, in a transaction that goes on to `resolve`: a run's waits belong to who holds the run, so
-- the waits need no lock of their own. What is in the hands of others is passed over; the inner limit is for the planner,
-- which without one would sort all that is due.
-- $1 limit
SELECT w.project, w.run, w.node, w.frames, w.call, w.part, w.token, w.kind, w.spec, w.mode, w.target, w.due, w.registered_at,
       (SELECT weft_now()) AS at
FROM (SELECT * FROM waits WHERE due <= (SELECT weft_now()) ORDER BY due LIMIT 20 * $1::integer) AS w,
     LATERAL (SELECT FROM runs
              WHERE project = w.project AND id = w.run AND ended_at IS NULL
              FOR NO KEY UPDATE SKIP LOCKED) AS r
LIMIT $1

-- name: resolve
-- Steps 3 and 4. Ends waits: whoever erases one has ended it. The other parts go with it where one is enough, or where it
-- is over without an answer. A run that nobody drives becomes ready, the owner of any other is told.
-- $1..$5 one entry a wait: projects, runs, tokens, events, whether it ends the other parts in any case
WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::integer[], $2::uuid[], $3::text[], $4::text[], $5::boolean[])
        WITH ORDINALITY AS a (project, run, token, event, closes, ord)
), locked AS MATERIALIZED (
    SELECT r.project, r.id
    FROM (SELECT DISTINCT project, run FROM asked ORDER BY run) AS a,
         LATERAL (SELECT project, id FROM runs
                  WHERE project = a.project AND id = a.run AND ended_at IS NULL
                  FOR NO KEY UPDATE) AS r
), ends AS MATERIALIZED (
    SELECT a.*, coalesce(w.mode = 'first' OR a.closes, false) AND w.mode IS NOT NULL AS alone,
           row_number() OVER (PARTITION BY w.project, w.run, w.node, w.frames, w.call ORDER BY a.ord) AS place
    FROM asked AS a
    JOIN locked AS l ON l.project = a.project AND l.id = a.run,
         LATERAL (SELECT * FROM waits WHERE project = a.project AND run = a.run AND token = a.token LIMIT 1) AS w
), taken AS (
    DELETE FROM waits AS w USING ends AS e
    WHERE w.project = e.project AND w.run = e.run AND w.token = e.token AND (e.place = 1 OR NOT e.alone)
    RETURNING w.project, w.run, w.token, w.node, w.frames, w.call, e.event, e.alone, e.ord
), losers AS (
    DELETE FROM waits AS w USING taken AS t
    WHERE t.alone AND w.project = t.project AND w.run = t.run AND w.token <> t.token
      AND w.call = t.call AND w.node = t.node AND w.frames = t.frames
), packed AS MATERIALIZED (
    SELECT project, run, count(*)::integer AS events, '[' || string_agg(event, ',' ORDER BY ord) || ']' AS text
    FROM taken GROUP BY project, run
), written AS (
    UPDATE runs AS r
    SET next_seq = r.next_seq + p.events,
        status = CASE WHEN r.worker IS NULL THEN 'queued' ELSE r.status END
    FROM packed AS p
    WHERE r.project = p.project AND r.id = p.run
    RETURNING r.project, r.id AS run, r.worker, r.next_seq, p.events, p.text
), noted AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT project, run, next_seq - events, events, (SELECT weft_now()), text::json FROM written
), readied AS (
    INSERT INTO ready (project, run) SELECT project, run FROM written WHERE worker IS NULL
    ON CONFLICT (project, run) DO NOTHING
), told AS (
    INSERT INTO notices (project, run, worker, kind)
    SELECT project, run, worker, 'answered' FROM written WHERE worker IS NOT NULL
    ON CONFLICT DO NOTHING
)
SELECT t.project, t.run, w.worker, t.token
FROM taken AS t JOIN written AS w ON w.project = t.project AND w.run = t.run

-- name: postpone
-- Step 4, one row by itself.
UPDATE waits SET due = (SELECT weft_now()) + $4::interval WHERE project = $1 AND run = $2 AND token = $3

-- name: run_of_token
SELECT r.project, r.status, r.reason, r.cause, r.error, r.ended_at
FROM projects AS p,
     LATERAL (SELECT * FROM runs WHERE project = p.id AND id = $1 LIMIT 1) AS r

-- name: told_of
-- The commits of a run that tell of the token $3, the newest first. It reads the whole journal, for those who come late.
SELECT at, events FROM journal
WHERE project = $1 AND run = $2 AND strpos(events::text, $3) > 0
ORDER BY first DESC
