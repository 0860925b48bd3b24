-- The group commit comes in four sizes, since a plan costs what it has parts: append_one for a lone run, append for many
-- that go on, append_waiting where some wait, append_ending where some end. All lock the runs (step 3) with SKIP LOCKED: a run that somebody else
-- holds is left out, and nobody is waited for. In all only a run's live owner, at its current lease, writes.

-- name: append_one
-- Step 3. $1 worker, $2 project, $3 run, $4 lease, $5 number of events, $6 open firings, $7 events
WITH locked AS MATERIALIZED (
    SELECT project, id FROM runs
    WHERE project = $2 AND id = $3 AND worker = $1 AND lease = $4 AND ended_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
), written AS (
    UPDATE runs AS r SET next_seq = r.next_seq + $5, open_firings = $6
    FROM locked AS l
    WHERE r.project = l.project AND r.id = l.id
    RETURNING r.project, r.id AS run, r.next_seq
), noted AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT project, run, next_seq - $5, $5, weft_now(), $7 FROM written
)
SELECT run, next_seq, false AS parked FROM written

-- name: append
-- Step 3. $1 worker; $2..$6 one entry a run: projects, runs, leases, numbers of events, open firings; $7..$10 journal rows
WITH locked AS MATERIALIZED (
    SELECT w.*
    FROM unnest($2::integer[], $3::uuid[], $4::integer[], $5::integer[], $6::json[])
             WITH ORDINALITY AS w (project, run, lease, events, open, ord),
         LATERAL (SELECT FROM runs
                  WHERE project = w.project AND id = w.run AND worker = $1 AND lease = w.lease AND ended_at IS NULL
                  FOR NO KEY UPDATE SKIP LOCKED) AS r
), written AS (
    UPDATE runs AS r SET next_seq = r.next_seq + l.events, open_firings = l.open
    FROM locked AS l
    WHERE r.project = l.project AND r.id = l.run
    RETURNING r.project, r.id AS run, r.next_seq, l.events, l.ord
), noted AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT w.project, w.run, w.next_seq - w.events + j.start, j.count, (SELECT weft_now()), j.events
    FROM unnest($7::integer[], $8::integer[], $9::integer[], $10::json[]) AS j (owner, start, count, events)
    JOIN written AS w ON w.ord = j.owner
)
SELECT run, next_seq, false AS parked FROM written

-- name: append_waiting
-- Steps 3 and 4. A run parks only where nothing came between what its owner knows and this write; its row is read under
-- the lock. Whoever waits for a run has it looked at once more, after this is committed.
-- $1 worker; $2..$8 one entry a run: projects, runs, leases, numbers of events, open firings, whether it parks, the last
-- event known; $9..$12 journal rows; $13..$23 waits; $24..$25 tokens that are erased
WITH locked AS MATERIALIZED (
    SELECT w.*, w.parks AND r.next_seq = w.known + 1 AS parked
    FROM unnest($2::integer[], $3::uuid[], $4::integer[], $5::integer[], $6::json[], $7::boolean[], $8::integer[])
             WITH ORDINALITY AS w (project, run, lease, events, open, parks, known, ord),
         LATERAL (SELECT next_seq FROM runs
                  WHERE project = w.project AND id = w.run AND worker = $1 AND lease = w.lease AND ended_at IS NULL
                  FOR NO KEY UPDATE SKIP LOCKED) AS r
), written AS (
    UPDATE runs AS r
    SET next_seq = r.next_seq + l.events,
        open_firings = l.open,
        status = CASE WHEN l.parked THEN 'waiting' ELSE r.status END,
        worker = CASE WHEN NOT l.parked THEN r.worker END
    FROM locked AS l
    WHERE r.project = l.project AND r.id = l.run
    RETURNING r.project, r.id AS run, r.next_seq, l.events, l.ord, l.parked
), noted AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT w.project, w.run, w.next_seq - w.events + j.start, j.count, (SELECT weft_now()), j.events
    FROM unnest($9::integer[], $10::integer[], $11::integer[], $12::json[]) AS j (owner, start, count, events)
    JOIN written AS w ON w.ord = j.owner
), registered AS (
    INSERT INTO waits (project, run, registered_at, node, frames, call, part, token, kind, mode, target, due, spec)
    SELECT w.project, w.run, (SELECT weft_now()),
           n.node, n.frames, n.call, n.part, n.token, n.kind, n.mode, n.target, n.due, n.spec
    FROM unnest($13::integer[], $14::text[], $15::text[], $16::integer[], $17::integer[], $18::text[], $19::text[],
                $20::text[], $21::uuid[], $22::timestamptz[], $23::json[])
             AS n (owner, node, frames, call, part, token, kind, mode, target, due, spec)
    JOIN written AS w ON w.ord = n.owner
    ON CONFLICT (project, run, token) DO NOTHING
    RETURNING project, target
), looked_at AS (
    INSERT INTO outbox (project, run, due)
    SELECT project, target, (SELECT weft_now()) FROM registered WHERE target IS NOT NULL
), forgotten AS (
    DELETE FROM waits AS t
    USING unnest($24::integer[], $25::text[]) AS f (owner, token) JOIN written AS w ON w.ord = f.owner
    WHERE t.project = w.project AND t.run = w.run AND t.token = f.token
), unready AS (
    DELETE FROM ready AS q USING written AS w WHERE q.project = w.project AND q.run = w.run AND w.parked
)
SELECT run, next_seq, parked FROM written

-- name: append_ending
-- Steps 2 to 4. The scope is locked only where the run ends; then it must have no children, whose creator would have
-- changed the row that is checked. What it still waited for is erased, and who waits for it hears of it.
-- $1 worker; $2..$8 one entry a run: projects, runs, leases, numbers of events, open firings, ends, errors;
-- $9..$12 journal rows; $13 whether the caller has ended, in this transaction, what is below
WITH writes AS MATERIALIZED (
    SELECT * FROM unnest($2::integer[], $3::uuid[], $4::integer[], $5::integer[], $6::json[], $7::text[], $8::text[])
        WITH ORDINALITY AS w (project, run, lease, events, open, ends, error, ord)
), closing AS MATERIALIZED (
    SELECT s.project, s.id
    FROM writes AS w,
         LATERAL (SELECT project, id FROM scopes
                  WHERE project = w.project AND id = w.run AND ended_at IS NULL AND (NOT has_children OR $13)
                  FOR UPDATE SKIP LOCKED) AS s
    WHERE w.ends IS NOT NULL
), locked AS MATERIALIZED (
    SELECT w.*
    FROM writes AS w,
         LATERAL (SELECT id FROM runs
                  WHERE project = w.project AND id = w.run AND worker = $1 AND lease = w.lease AND ended_at IS NULL
                    AND (w.ends IS NULL OR EXISTS (SELECT FROM closing AS c WHERE c.project = w.project AND c.id = w.run))
                  FOR NO KEY UPDATE SKIP LOCKED) AS r
), written AS (
    UPDATE runs AS r
    SET next_seq = r.next_seq + l.events,
        open_firings = l.open,
        status = coalesce(l.ends, r.status),
        ended_at = CASE WHEN l.ends IS NOT NULL THEN (SELECT weft_now()) END,
        error = l.error
    FROM locked AS l
    WHERE r.project = l.project AND r.id = l.run
    RETURNING r.project, r.id AS run, r.next_seq, l.events, l.ord, l.ends
), ended_scopes AS (
    UPDATE scopes AS s SET ended_at = (SELECT weft_now()), ended_by = s.id
    FROM written AS w
    WHERE s.project = w.project AND s.id = w.run AND w.ends IS NOT NULL
    RETURNING s.project, s.id, s.parent
), told AS (
    INSERT INTO outbox (project, run, due)
    SELECT project, id, (SELECT weft_now()) FROM ended_scopes WHERE parent IS NOT NULL
), erased AS (
    DELETE FROM waits AS t USING written AS w
    WHERE t.project = w.project AND t.run = w.run AND w.ends IS NOT NULL
), gone AS (
    DELETE FROM ready AS q USING written AS w
    WHERE q.project = w.project AND q.run = w.run AND w.ends IS NOT NULL
), untagged AS (
    UPDATE tags AS t SET live = false FROM written AS w
    WHERE t.project = w.project AND t.run = w.run AND w.ends IS NOT NULL
), noted AS (
    INSERT INTO journal (project, run, first, count, at, events)
    SELECT w.project, w.run, w.next_seq - w.events + j.start, j.count, (SELECT weft_now()), j.events
    FROM unnest($9::integer[], $10::integer[], $11::integer[], $12::json[]) AS j (owner, start, count, events)
    JOIN written AS w ON w.ord = j.owner
)
SELECT run, next_seq, false AS parked FROM written

-- name: lock_scope
-- Step 2, waiting.
SELECT FROM scopes WHERE project = $1 AND id = $2 FOR UPDATE

-- name: lock_run
-- Step 3, waiting.
SELECT FROM runs WHERE project = $1 AND id = $2 FOR NO KEY UPDATE

-- name: note
-- Events of a run whose row the caller has locked (step 3) and whose next_seq it moves.
-- $1 project; $2..$3 one entry a run: runs, first numbers; $4..$7 journal rows
INSERT INTO journal (project, run, first, count, at, events)
SELECT $1, w.run, w.first + j.start, j.count, (SELECT weft_now()), j.events
FROM unnest($4::integer[], $5::integer[], $6::integer[], $7::json[]) AS j (owner, start, count, events)
JOIN unnest($2::uuid[], $3::integer[]) WITH ORDINALITY AS w (run, first, ord) ON w.ord = j.owner

-- name: read
SELECT first, count, at, events FROM journal
WHERE project = $1 AND run = $2
  AND first >= (SELECT coalesce(max(first), 1) FROM journal WHERE project = $1 AND run = $2 AND first <= $3 + 1)
  AND first + count > $3 + 1
ORDER BY first

-- name: aftermath
INSERT INTO run_aftermath (project, run, at, event) VALUES ($1, $2, weft_now(), $3)
