-- The rules that hold always, one query each: no row may come back. Each begins with project and run; what else a row
-- has shows what is wrong with it. Names are spelled with their schema, since tests ask on connections of their own.

-- name: one_end
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), terminal AS (
    SELECT project, run, number, event ->> 'kind' AS kind FROM events
    WHERE event ->> 'kind' IN ('execution_completed', 'execution_failed', 'execution_cancelled')
)
SELECT project, run, count(*) AS ends FROM terminal GROUP BY project, run HAVING count(*) > 1

-- name: nothing_after_the_end
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), terminal AS (
    SELECT project, run, number, event ->> 'kind' AS kind FROM events
    WHERE event ->> 'kind' IN ('execution_completed', 'execution_failed', 'execution_cancelled')
)
SELECT e.project, e.run, e.number, e.event ->> 'kind' AS kind FROM events AS e JOIN terminal AS t USING (project, run)
WHERE e.number > t.number

-- name: end_and_journal
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), terminal AS (
    SELECT project, run, number, event ->> 'kind' AS kind FROM events
    WHERE event ->> 'kind' IN ('execution_completed', 'execution_failed', 'execution_cancelled')
)
SELECT r.project, r.id AS run, r.status, t.kind FROM weft.runs AS r
LEFT JOIN terminal AS t ON t.project = r.project AND t.run = r.id
WHERE (r.ended_at IS NOT NULL) IS DISTINCT FROM (t.run IS NOT NULL) OR t.kind <> 'execution_' || r.status

-- name: dense_numbers
SELECT j.project, j.run, j.first, j.count FROM (
    SELECT project, run, first, count, json_array_length(events) AS held,
           lag(first + count, 1, 1) OVER w AS expected,
           lead(first) OVER w AS next
    FROM weft.journal WINDOW w AS (PARTITION BY project, run ORDER BY first)
) AS j JOIN weft.runs AS r ON r.project = j.project AND r.id = j.run
WHERE j.first <> j.expected OR j.count <> j.held OR (j.next IS NULL AND j.first + j.count <> r.next_seq)

-- name: journal_there
SELECT r.project, r.id AS run, r.next_seq FROM weft.runs AS r
WHERE r.next_seq > 1
  AND NOT EXISTS (SELECT FROM weft.journal AS j WHERE j.project = r.project AND j.run = r.id)

-- name: something_to_do
SELECT r.project, r.id AS run, r.status, q.worker FROM weft.runs AS r
LEFT JOIN weft.ready AS q ON q.project = r.project AND q.run = r.id
WHERE (r.status IN ('queued', 'running')) IS DISTINCT FROM (q.run IS NOT NULL)
UNION ALL
SELECT q.project, q.run, 'no run', q.worker FROM weft.ready AS q
WHERE NOT EXISTS (SELECT FROM weft.runs AS r WHERE r.project = q.project AND r.id = q.run)

-- name: waiting_for_something
SELECT r.project, r.id AS run, r.worker FROM weft.runs AS r
WHERE r.status = 'waiting'
  AND (r.worker IS NOT NULL OR NOT EXISTS (SELECT FROM weft.waits AS w WHERE w.project = r.project AND w.run = r.id))

-- name: known_driver
SELECT r.project, r.id AS run, r.worker FROM weft.runs AS r
WHERE r.status = 'running' AND NOT EXISTS (SELECT FROM weft.workers AS w WHERE w.id = r.worker)

-- name: waits_of_ended
SELECT w.project, w.run, w.token, r.status FROM weft.waits AS w
LEFT JOIN weft.runs AS r ON r.project = w.project AND r.id = w.run
LEFT JOIN weft.scopes AS s ON s.project = w.project AND s.id = w.run
WHERE r.ended_at IS NOT NULL OR s.ended_at IS NOT NULL OR r.id IS NULL

-- name: waits_and_journal
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), registered AS (
    SELECT project, run, wait ->> 'token' AS token
    FROM events, json_array_elements(event -> 'waits') AS wait WHERE event ->> 'kind' = 'suspension_registered'
    UNION ALL
    SELECT project, run, event ->> 'token' FROM events WHERE event ->> 'kind' = 'node_retry_scheduled'
), resolved AS (
    SELECT project, run, event ->> 'token' AS token, number FROM events
    WHERE event ->> 'kind' = 'suspension_resolved'
)
SELECT w.project, w.run, w.token, w.kind FROM weft.waits AS w
WHERE (w.project, w.run, w.token) NOT IN (SELECT project, run, token FROM registered)
   OR (w.project, w.run, w.token) IN (SELECT project, run, token FROM resolved)

-- name: one_answer
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), resolved AS (
    SELECT project, run, event ->> 'token' AS token, number FROM events
    WHERE event ->> 'kind' = 'suspension_resolved'
)
SELECT project, run, token, count(*) AS ends FROM resolved GROUP BY project, run, token HAVING count(*) > 1

-- name: ends_are_told
SELECT w.project, w.run, w.target FROM weft.waits AS w
LEFT JOIN weft.runs AS r ON r.project = w.project AND r.id = w.target
WHERE w.target IS NOT NULL AND (r.ended_at IS NOT NULL OR r.id IS NULL)
  AND NOT EXISTS (SELECT FROM weft.outbox AS o WHERE o.project = w.project AND o.run = w.target)

-- name: one_driver
SELECT r.project, r.id AS run, r.status, r.worker, q.worker AS ready_for FROM weft.runs AS r
JOIN weft.ready AS q ON q.project = r.project AND q.run = r.id
WHERE r.worker IS DISTINCT FROM q.worker OR (r.status = 'queued') <> (q.worker IS NULL)

-- name: run_and_scope
SELECT r.project, r.id AS run FROM weft.runs AS r JOIN weft.scopes AS s USING (project, id)
WHERE (r.ended_at IS NULL) <> (s.ended_at IS NULL) OR (s.ended_at IS NULL) <> (s.ended_by IS NULL)

-- name: nothing_live_below
SELECT c.project, c.id AS run, c.parent FROM weft.scopes AS c
JOIN weft.scopes AS p ON p.project = c.project AND p.id = c.parent
WHERE p.ended_at IS NOT NULL AND c.ended_at IS NULL

-- name: tree
SELECT c.project, c.id AS run, c.parent FROM weft.scopes AS c
JOIN weft.scopes AS p ON p.project = c.project AND p.id = c.parent
WHERE c.depth <> p.depth + 1 OR NOT p.has_children
   OR (p.effective_deadline IS NOT NULL
       AND (c.effective_deadline IS NULL OR c.effective_deadline > p.effective_deadline))
UNION ALL
SELECT project, id, parent FROM weft.scopes WHERE parent IS NULL AND depth <> 0

-- name: firings_of_ended
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), steps AS (
    SELECT project, run,
           jsonb_build_array(event -> 'node') || coalesce((event -> 'frames')::jsonb, '[]') AS firing,
           CASE WHEN event ->> 'kind' = 'node_started' THEN 1 ELSE -1 END AS change
    FROM events
    WHERE event ->> 'kind' IN ('node_started', 'node_completed', 'node_failed', 'node_cancelled', 'node_skipped')
), open AS (
    SELECT project, run, firing FROM steps GROUP BY project, run, firing HAVING sum(change) > 0
)
SELECT o.project, o.run, o.firing::text FROM open AS o JOIN weft.runs AS r ON r.project = o.project AND r.id = o.run
WHERE r.ended_at IS NOT NULL

-- name: open_firings
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), steps AS (
    SELECT project, run,
           jsonb_build_array(event -> 'node') || coalesce((event -> 'frames')::jsonb, '[]') AS firing,
           CASE WHEN event ->> 'kind' = 'node_started' THEN 1 ELSE -1 END AS change
    FROM events
    WHERE event ->> 'kind' IN ('node_started', 'node_completed', 'node_failed', 'node_cancelled', 'node_skipped')
), open AS (
    SELECT project, run, firing FROM steps GROUP BY project, run, firing HAVING sum(change) > 0
)
SELECT coalesce(said.project, o.project) AS project, coalesce(said.run, o.run) AS run,
       said.firing::text AS in_run, o.firing::text AS in_journal
FROM (SELECT r.project, r.id AS run, f.firing
      FROM weft.runs AS r CROSS JOIN LATERAL jsonb_array_elements(r.open_firings::jsonb) AS f (firing)) AS said
FULL JOIN open AS o ON o.project = said.project AND o.run = said.run AND o.firing = said.firing
WHERE said.firing IS NULL OR o.firing IS NULL

-- name: live_tags
SELECT t.project, t.run, t.tag, t.live FROM weft.tags AS t
LEFT JOIN weft.runs AS r ON r.project = t.project AND r.id = t.run
WHERE t.live IS DISTINCT FROM (r.ended_at IS NULL AND r.id IS NOT NULL)

-- name: order_of_tags
SELECT project, min(run::text)::uuid AS run, tag, number FROM weft.tags
GROUP BY project, tag, number HAVING count(*) > 1

-- name: stops_done
SELECT s.project, t.run, s.tag, s.run AS asked_by FROM weft.stops AS s
JOIN weft.tags AS t ON t.project = s.project AND t.tag = s.tag
WHERE s.state = 'done' AND t.live AND t.number < s.cutoff AND (t.run <> s.run OR s.reaches_self)
