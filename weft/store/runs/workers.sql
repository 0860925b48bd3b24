-- name: register
INSERT INTO workers (id, name, host, pid, projects, lease, lease_until, started_at)
SELECT gen_random_uuid(), $1, $2, $3, $4, $5, now.at + $5, now.at FROM (SELECT weft_now() AS at) AS now
RETURNING id

-- name: renew
-- Step 5.
UPDATE workers SET lease_until = weft_now() + lease WHERE id = $1 AND ended_at IS NULL RETURNING id

-- name: revive
-- Step 5.
UPDATE workers SET lease_until = weft_now() + lease, ended_at = NULL WHERE id = $1

-- name: number
SELECT number FROM workers WHERE id = $1

-- name: lock_is_proof
-- Step 5. Asked on another connection than the one that holds the lock.
UPDATE workers AS w SET lock_is_proof = EXISTS (
    SELECT FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.classid::bigint = $2 AND l.objid::bigint = w.number)
WHERE w.id = $1
RETURNING lock_is_proof

-- name: hold
SELECT pg_try_advisory_lock($1, $2)

-- name: without_death_lock
SELECT w.id FROM workers AS w
WHERE w.ended_at IS NULL AND w.lock_is_proof
  AND NOT EXISTS (
    SELECT FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.classid::bigint = $1 AND l.objid::bigint = w.number)

-- name: look
-- All that a worker looks for now and again, in one statement: what it must hear, what it could claim, whether dead workers left
-- something, and whose death lock is gone. $1 class of the death locks, $2 worker, $3 projects, $4 runs that it may claim (null: any)
-- $5 from how many deaths on a run is suspect
SELECT EXISTS (SELECT FROM notices WHERE worker = $2) AS told,
       EXISTS (SELECT FROM ready
               WHERE worker IS NULL AND project = ANY ($3::integer[]) AND ($4::uuid[] IS NULL OR run = ANY ($4))
                 AND deaths < $5) AS ready,
       EXISTS (SELECT FROM ready
               WHERE worker IS NULL AND project = ANY ($3::integer[]) AND ($4::uuid[] IS NULL OR run = ANY ($4))
                 AND deaths >= $5) AS suspects,
       EXISTS (SELECT FROM workers WHERE ended_at IS NULL AND lease_until < (SELECT weft_now()))
       OR (EXISTS (SELECT FROM workers WHERE ended_at > (SELECT weft_now()) - interval '5 minutes')
           AND EXISTS (SELECT FROM ready
                       WHERE worker IS NOT NULL
                         AND worker <> ALL (ARRAY(SELECT id FROM workers WHERE ended_at IS NULL)))) AS leaves_runs,
       ARRAY(SELECT w.id FROM workers AS w
             WHERE w.ended_at IS NULL AND w.lock_is_proof
               AND NOT EXISTS (
                 SELECT FROM pg_locks AS l
                 WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                   AND l.classid::bigint = $1 AND l.objid::bigint = w.number)) AS unlocked,
       -- After a crash the server starts all of its processes anew, but for the one that watches over them. Who may not see
       -- when is told that it was just now.
       coalesce((SELECT clock_timestamp() - backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'),
                interval '0') AS server_up

-- name: bury
-- Step 5, SKIP LOCKED: a worker that is renewing at this moment lives. The lapsed, and those of $1 whose lock is gone.
WITH dead AS MATERIALIZED (
    SELECT id FROM workers
    WHERE ended_at IS NULL AND (lease_until < (SELECT weft_now()) OR id = ANY ($1::uuid[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE workers AS w SET ended_at = (SELECT weft_now()) FROM dead AS d WHERE w.id = d.id
RETURNING w.id

-- name: give_back_own
-- Steps 3 and 4, waiting: whoever signs off or begins anew leaves nothing behind. The ready list leads, as in a claim.
WITH mine AS MATERIALIZED (
    SELECT q.project, q.run AS id
    FROM (SELECT project, run FROM ready WHERE worker = $1 ORDER BY run) AS q,
         LATERAL (SELECT FROM runs
                  WHERE project = q.project AND id = q.run AND worker = $1 AND ended_at IS NULL
                  FOR NO KEY UPDATE) AS r
), freed AS (
    UPDATE ready AS q SET worker = NULL FROM mine AS m WHERE q.project = m.project AND q.run = m.id
)
UPDATE runs AS r SET worker = NULL, status = 'queued' FROM mine AS m
WHERE r.project = m.project AND r.id = m.id
RETURNING r.project, r.id AS run

-- name: sign_off
-- Step 5.
UPDATE workers SET ended_at = weft_now() WHERE id = $1 AND ended_at IS NULL

-- name: give_back
-- Steps 3 and 4, both with SKIP LOCKED: what somebody is ending or claiming is looked at again next time, as long as it is owned by
-- nobody who lives. That also catches what a worker claimed while it was being given up. A run that has come no further since the
-- last death than to say of each firing that it goes on has one more.
WITH left_behind AS MATERIALIZED (
    SELECT q.project, q.run, q.worker, r.next_seq, r.resumed
    FROM (SELECT project, run, worker FROM ready
          WHERE worker IS NOT NULL AND worker <> ALL (ARRAY(SELECT id FROM workers WHERE ended_at IS NULL))
          FOR UPDATE SKIP LOCKED) AS q,
         LATERAL (SELECT next_seq, json_array_length(open_firings) AS resumed FROM runs
                  WHERE project = q.project AND id = q.run AND ended_at IS NULL
                  FOR NO KEY UPDATE SKIP LOCKED) AS r
), freed AS (
    UPDATE ready AS q
    SET worker = NULL, died_at = l.next_seq,
        deaths = CASE WHEN q.deaths > 0 AND l.next_seq > q.died_at + l.resumed THEN 1 ELSE least(q.deaths + 1, 1000) END
    FROM left_behind AS l WHERE q.project = l.project AND q.run = l.run
), queued AS (
    UPDATE runs AS r SET worker = NULL, status = 'queued' FROM left_behind AS l
    WHERE r.project = l.project AND r.id = l.run
)
SELECT project, run, worker FROM left_behind

-- name: forget_notices
DELETE FROM notices WHERE worker IN (SELECT id FROM workers WHERE ended_at IS NOT NULL)

-- name: forget_workers
DELETE FROM workers WHERE ended_at < (SELECT weft_now()) - interval '1 day'

-- name: notices
SELECT project, run, kind FROM notices WHERE worker = $1

-- name: heed
-- Step 4. $1 worker; $2..$3 one entry a notice: runs, kinds
DELETE FROM notices AS n USING unnest($2::uuid[], $3::text[]) AS told (run, kind)
WHERE n.worker = $1 AND n.run = told.run AND n.kind = told.kind

-- name: alive
SELECT id, number, name, host, pid, started_at FROM workers
WHERE ended_at IS NULL AND lease_until >= (SELECT weft_now()) AND $1 = ANY (projects)
ORDER BY number
