-- Runs: their scopes, their journal, who drives them, their tags and the stops that they ask.
--
-- ORDER OF LOCKS. Whoever takes more than one takes them from the top of this list down; a query that locks says
-- which step it is. What is taken with SKIP LOCKED waits for nobody, so it may stand anywhere.
--
--   1. tag locks: advisory, one a (project, tag), by their 64-bit key
--   2. scope rows by (depth, id)
--   3. run rows by id
--   4. ready rows, stops, notices
--   5. worker rows
--
-- Strengths on a scope: creating below it FOR KEY SHARE (the first creation FOR NO KEY UPDATE, since it writes
-- has_children); ending it FOR UPDATE. On a run: its owner FOR NO KEY UPDATE; ending it FOR UPDATE. A cancel never takes a
-- tag lock. Nothing locks upwards: no transaction that holds a scope or a run asks for a scope of lesser depth.
--
-- KEYS. Every primary and foreign key of a project's data starts with the project, so that projects can be spread
-- over databases. Indexes for work (what is ready, due or unclaimed) start with what the search is by.
--
-- TIME. Nothing here asks for the time but weft_now(), and a search by time compares with (SELECT weft_now()):
-- compared directly it is no index condition, since its value may change within the statement.

CREATE FUNCTION weft_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + coalesce(nullif(current_setting('weft.clock_offset', true), ''), '0')::interval
$$;
COMMENT ON FUNCTION weft_now() IS
    'The store''s clock. A test sets weft.clock_offset (an interval) to be days ahead.';

CREATE FUNCTION weft_uuid_at(micros bigint, tail text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(micros / 1000), 12, '0')
            || to_hex(28672 + (micros % 1000) * 4096 / 1000)
            || tail)::uuid
$$;
COMMENT ON FUNCTION weft_uuid_at(bigint, text) IS
    'A UUIDv7 of an instant in microseconds; the tail is its last sixteen hexadecimal digits.';

CREATE FUNCTION weft_run_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT weft_uuid_at((extract(epoch FROM weft_now()) * 1000000)::bigint,
                        substr(replace(gen_random_uuid()::text, '-', ''), 17))
$$;
COMMENT ON FUNCTION weft_run_id() IS
    'A new UUIDv7, ordered by the microsecond of the database''s clock.';


CREATE TABLE projects (
    id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key   text NOT NULL UNIQUE,
    name  text NOT NULL
);

-- A program is stored once by its hash; no run refers to it by a foreign key, since every start would then lock
-- the one row that all runs share.
CREATE TABLE programs (
    project  integer NOT NULL,
    hash     text NOT NULL,
    text     json NOT NULL,
    PRIMARY KEY (project, hash)
);


-- The tree that an end walks. effective_deadline is the least of the own and the parent's, fixed at creation, so that a
-- guard reads its own row only. has_children only ever turns true; an owner's commit may end a run in passing only
-- where it is false, and a creator that turns it true makes that commit look again.
CREATE TABLE scopes (
    project             integer NOT NULL,
    id                  uuid NOT NULL,
    parent              uuid,
    depth               integer NOT NULL DEFAULT 0,
    has_children        boolean NOT NULL DEFAULT false,
    effective_deadline  timestamptz,
    ended_at            timestamptz,
    ended_by            uuid,
    PRIMARY KEY (project, id),
    FOREIGN KEY (project, parent) REFERENCES scopes (project, id) ON DELETE CASCADE
) WITH (fillfactor = 80);
COMMENT ON COLUMN scopes.ended_by IS
    'The scope whose end ended this one: itself, or one above it.';

CREATE INDEX scopes_children ON scopes (project, parent) WHERE parent IS NOT NULL;
CREATE INDEX scopes_due ON scopes (effective_deadline) WHERE effective_deadline IS NOT NULL AND ended_at IS NULL;

-- One to one with its scope. No column that a commit changes stands in an index, so commits are heap-only updates;
-- next_seq and open_firings stand last, so that the log holds little more than what changed.
CREATE TABLE runs (
    project       integer NOT NULL,
    id            uuid NOT NULL,
    program       text NOT NULL,
    entry         text NOT NULL,
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    status        text NOT NULL
                  CHECK (status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    worker        uuid,
    lease         integer NOT NULL,
    reason        text,
    cause         json,
    error         text,
    next_seq      integer NOT NULL,
    open_firings  json NOT NULL,
    PRIMARY KEY (project, id),
    FOREIGN KEY (project, id) REFERENCES scopes (project, id) ON DELETE CASCADE,
    CHECK ((ended_at IS NULL) = (status IN ('queued', 'running', 'waiting')))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
COMMENT ON COLUMN runs.lease IS
    'Grows with every claim; a write that names an older one is refused.';
COMMENT ON COLUMN runs.next_seq IS
    'The number of the next event. Numbers come from this row under its lock, so they are dense and in commit order.';
COMMENT ON COLUMN runs.open_firings IS
    'The firings that have started and not ended, [[node, frame, ...], ...]: what a cancel must close.';

-- The queue and the claim: a row for every run that has something to do. Small, and gone when the run ends.
CREATE TABLE ready (
    project  integer NOT NULL,
    run      uuid NOT NULL,
    worker   uuid,
    PRIMARY KEY (project, run)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX ready_unclaimed ON ready (project, run) WHERE worker IS NULL;


-- What a run committed at once is one row: `count` events from number `first` on, as one JSON array.
-- Partitioned by run id, whose first bits are its time; no foreign key points here or from here.
CREATE TABLE journal (
    project  integer NOT NULL,
    first    integer NOT NULL,
    run      uuid NOT NULL,
    at       timestamptz NOT NULL,
    count    integer NOT NULL,
    events   json NOT NULL,
    PRIMARY KEY (project, run, first)
) PARTITION BY RANGE (run);

CREATE TABLE journal_default PARTITION OF journal DEFAULT
    WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Called by the migration and then by maintenance, now and again. A month for which rows already went to the default
-- partition (nobody called for three months) stays there.
CREATE FUNCTION weft_make_journal_periods() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    month   timestamp;
    lowest  uuid;
    above   uuid;
    made    integer := 0;
BEGIN
    FOR ahead IN 0..3 LOOP
        month := date_trunc('month', weft_now() AT TIME ZONE 'UTC') + make_interval(months => ahead);
        CONTINUE WHEN to_regclass('weft.journal_' || to_char(month, 'YYYY_MM')) IS NOT NULL;
        lowest := (lpad(to_hex((extract(epoch FROM month) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;
        above := (lpad(to_hex((extract(epoch FROM month + interval '1 month') * 1000)::bigint), 12, '0')
                  || repeat('0', 20))::uuid;
        CONTINUE WHEN EXISTS (SELECT FROM weft.journal_default WHERE run >= lowest AND run < above);
        EXECUTE format(
            'CREATE TABLE weft.%I PARTITION OF weft.journal FOR VALUES FROM (%L) TO (%L)'
            ' WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)',
            'journal_' || to_char(month, 'YYYY_MM'), lowest, above);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

SELECT weft_make_journal_periods();

-- What came after the end: a log line, an error in `finally`, a thread left behind. The journal stays closed.
CREATE TABLE run_aftermath (
    project  integer NOT NULL,
    run      uuid NOT NULL,
    number   integer GENERATED ALWAYS AS IDENTITY,
    at       timestamptz NOT NULL,
    event    json NOT NULL,
    PRIMARY KEY (project, run, number),
    FOREIGN KEY (project, run) REFERENCES runs (project, id) ON DELETE CASCADE
);


-- One row a (project, tag, run), never moved by tagging again. Numbers come from one sequence for all tags and are drawn
-- under the tag's lock, so that within a tag the order of numbers is the order of commits.
CREATE SEQUENCE tag_numbers;

CREATE TABLE tags (
    project  integer NOT NULL,
    number   bigint NOT NULL,
    run      uuid NOT NULL,
    live     boolean NOT NULL DEFAULT true,
    tag      text NOT NULL,
    PRIMARY KEY (project, tag, run),
    FOREIGN KEY (project, run) REFERENCES runs (project, id) ON DELETE CASCADE
);
COMMENT ON COLUMN tags.live IS
    'False once the run has ended: a stop of a busy tag must not wade through all that ever carried it.';

CREATE INDEX tags_of_run ON tags (project, run);
CREATE INDEX tags_live ON tags (project, tag, number) WHERE live;

-- A stop that a run asked, kept until the run is deleted: a body that runs again lands on the row of the first time.
CREATE TABLE stops (
    project       integer NOT NULL,
    id            bigint GENERATED ALWAYS AS IDENTITY,
    run           uuid NOT NULL,
    node          text NOT NULL,
    frames        text NOT NULL,
    call          integer NOT NULL,
    tag           text NOT NULL,
    include       boolean NOT NULL,
    reaches_self  boolean NOT NULL,
    cutoff        bigint,
    state         text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'done')),
    attempts      integer NOT NULL DEFAULT 0,
    asked_at      timestamptz NOT NULL,
    due           timestamptz NOT NULL,
    PRIMARY KEY (project, id),
    UNIQUE (project, run, node, frames, call, tag),
    FOREIGN KEY (project, run) REFERENCES runs (project, id) ON DELETE CASCADE
);
COMMENT ON COLUMN stops.cutoff IS
    'Runs whose number for the tag is below it are reached. Null: an Include that was not yet carried out.';

CREATE INDEX stops_due ON stops (due) WHERE state = 'queued';


-- One row a process start. `number` is what people read ("worker 3") and the key of the death lock.
CREATE TABLE workers (
    id             uuid PRIMARY KEY,
    number         integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    name           text NOT NULL,
    host           text NOT NULL,
    pid            integer NOT NULL,
    projects       integer[] NOT NULL,
    lease          interval NOT NULL,
    lease_until    timestamptz NOT NULL,
    lock_is_proof  boolean NOT NULL DEFAULT false,
    started_at     timestamptz NOT NULL,
    ended_at       timestamptz
) WITH (fillfactor = 50);
COMMENT ON COLUMN workers.lock_is_proof IS
    'Others can see this worker''s death lock, so that its absence proves the death. False behind a pooler that hides it.';

-- What an owner must hear and may have missed: one of its runs has ended under it.
CREATE TABLE notices (
    project  integer NOT NULL,
    run      uuid NOT NULL,
    worker   uuid NOT NULL,
    PRIMARY KEY (project, run, worker)
);

CREATE INDEX notices_of_worker ON notices (worker);
