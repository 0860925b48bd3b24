-- name: add
-- Below the tags' locks (step 1) and the asker's (step 3). A tagged asker's Keep reaches what is numbered below itself, an
-- untagged one's what is tagged so far; an Include is bounded when it is first carried out. Rows of ended runs need not be
-- looked at: they are reached by nothing.
-- $1 project, $2 run, $3 node, $4 frames, $5 call; $6 tags, $7 whether each includes the asker
INSERT INTO stops (project, run, node, frames, call, tag, include, reaches_self, cutoff, asked_at, due)
SELECT $1, $2, $3, $4, $5, asked.tag, asked.include, asked.include AND own.number IS NOT NULL,
       CASE WHEN NOT asked.include THEN coalesce(
           own.number,
           (SELECT max(t.number) + 1 FROM tags AS t WHERE t.project = $1 AND t.tag = asked.tag AND t.live),
           1)
       END,
       now.at, now.at
FROM (SELECT weft_now() AS at) AS now,
     unnest($6::text[], $7::boolean[]) WITH ORDINALITY AS asked (tag, include, ord)
     LEFT JOIN tags AS own ON own.project = $1 AND own.tag = asked.tag AND own.run = $2
ORDER BY asked.ord
ON CONFLICT (project, run, node, frames, call, tag) DO NOTHING

-- name: asked
SELECT s.id, s.reaches_self
FROM unnest($6::text[]) WITH ORDINALITY AS asked (tag, ord)
JOIN stops AS s ON s.project = $1 AND s.run = $2 AND s.node = $3 AND s.frames = $4 AND s.call = $5 AND s.tag = asked.tag
ORDER BY asked.ord

-- name: take_due
-- Step 4, SKIP LOCKED. Whoever takes a stop has it until its new due time; should it die, it comes due again.
-- $1 projects or null, $2 limit, $3 how long it is kept
WITH due AS MATERIALIZED (
    SELECT project, id FROM stops
    WHERE state = 'queued' AND due <= (SELECT weft_now()) AND ($1::integer[] IS NULL OR project = ANY ($1))
    ORDER BY due
    LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE stops AS s SET due = (SELECT weft_now()) + $3::interval, attempts = s.attempts + 1
FROM due AS d
WHERE s.project = d.project AND s.id = d.id
RETURNING s.project, s.id, s.run, s.tag, s.include, s.reaches_self, s.cutoff, s.attempts

-- name: bound
-- Step 4. The first carry-out of an Include fixes whom it reaches, for every later one.
UPDATE stops AS s
SET cutoff = coalesce(
    s.cutoff,
    (SELECT max(t.number) + 1 FROM tags AS t WHERE t.project = s.project AND t.tag = s.tag AND t.live),
    1)
WHERE s.project = $1 AND s.id = $2
RETURNING s.cutoff

-- name: targets
-- $1 project, $2 tag, $3 cutoff, $4 the run that is spared or null, $5 number to go on after, $6 limit
SELECT run, number FROM tags
WHERE project = $1 AND tag = $2 AND live AND number < $3 AND number > $5 AND run IS DISTINCT FROM $4
ORDER BY number
LIMIT $6

-- name: finish
-- Step 4. Done only when nothing that it reaches is left.
-- $1 project, $2 id, $3 the run that is spared or null
UPDATE stops AS s SET state = 'done'
WHERE s.project = $1 AND s.id = $2 AND s.state = 'queued'
  AND NOT EXISTS (SELECT FROM tags AS t
                  WHERE t.project = s.project AND t.tag = s.tag AND t.live AND t.number < s.cutoff
                    AND t.run IS DISTINCT FROM $3)

-- name: postpone
-- Step 4.
UPDATE stops SET due = (SELECT weft_now()) + $3::interval WHERE project = $1 AND id = $2 AND state = 'queued'

-- name: next_number
SELECT coalesce(max(number) + 1, 1) FROM tags WHERE project = $1 AND tag = $2 AND live

-- name: count_tagged
SELECT count(*) FROM tags WHERE project = $1 AND tag = $2 AND live
