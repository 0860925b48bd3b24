-- Waits: what a parked run waits for, the runs that others may wait for, folded states of long journals, and API tokens.
--
-- In the ORDER OF LOCKS of the first migration waits and the outbox stand at step 4. A run's waits are made and erased only
-- by who holds the run's row (step 3), so that an answer, a timer, the owner and an end each see all that came before.

CREATE TABLE secret (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    key  bytea NOT NULL
);
COMMENT ON TABLE secret IS
    'What the tokens of waits are made with, so that nobody guesses one. It lives as long as the database.';

INSERT INTO secret (key)
    SELECT decode(string_agg(replace(gen_random_uuid()::text, '-', ''), ''), 'hex') FROM generate_series(1, 3);

-- A token is a function of run, node, frames, call and part, so it is the key: the same wait cannot be registered twice.
-- Like ready it refers to no run by a foreign key, which would cost each parking run a look; an end erases both.
CREATE TABLE waits (
    project        integer NOT NULL,
    call           integer NOT NULL,
    run            uuid NOT NULL,
    due            timestamptz,
    registered_at  timestamptz NOT NULL,
    target         uuid,
    part           smallint NOT NULL,
    token          text NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('form', 'timer', 'webhook', 'run', 'retry')),
    mode           text CHECK (mode IN ('first', 'all')),
    node           text NOT NULL,
    frames         text NOT NULL,
    spec           json NOT NULL,
    PRIMARY KEY (project, run, token)
) WITH (autovacuum_vacuum_scale_factor = 0.01);
COMMENT ON COLUMN waits.due IS
    'When a timer or a back-off ends, and when anything else times out.';
COMMENT ON COLUMN waits.mode IS
    'How many of the parts of its suspension must end; null where it is the only one.';
COMMENT ON COLUMN waits.target IS
    'The run whose end it waits for.';

CREATE INDEX waits_due ON waits (due) WHERE due IS NOT NULL;
CREATE INDEX waits_target ON waits (project, target) WHERE target IS NOT NULL;
CREATE INDEX waits_forms ON waits (project, registered_at) WHERE kind = 'form';

-- Runs to look at: whether one has ended, and who waits for it. A row is written by the end of every run that hangs below
-- another, and by the registration of a wait for a run; so whichever comes second is seen with the first. A row of its own
-- for each, since one that is just being looked at must not swallow the next.
CREATE TABLE outbox (
    project  integer NOT NULL,
    id       bigint GENERATED ALWAYS AS IDENTITY,
    run      uuid NOT NULL,
    due      timestamptz NOT NULL,
    PRIMARY KEY (project, id)
);

CREATE INDEX outbox_due ON outbox (due);

-- The folded state of a run after its event number `after`; a wake goes on from there.
CREATE TABLE snapshots (
    project  integer NOT NULL,
    run      uuid NOT NULL,
    after    integer NOT NULL,
    state    json NOT NULL,
    PRIMARY KEY (project, run),
    FOREIGN KEY (project, run) REFERENCES runs (project, id) ON DELETE CASCADE
);

-- An owner hears of an answer as of an end, and of both.
ALTER TABLE notices ADD COLUMN kind text NOT NULL DEFAULT 'ended' CHECK (kind IN ('ended', 'answered'));
ALTER TABLE notices DROP CONSTRAINT notices_pkey, ADD PRIMARY KEY (project, run, worker, kind);

-- API tokens. The token itself is nowhere: only its SHA-256. Without a project it is for all of them.
CREATE TABLE tokens (
    id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        bytea NOT NULL UNIQUE,
    name        text NOT NULL,
    project     integer,
    rights      text[] NOT NULL CHECK (rights <@ ARRAY['read', 'answer', 'run', 'stop', 'configure']),
    created_at  timestamptz NOT NULL,
    revoked_at  timestamptz
);

-- Called by retention. A month that is over and has no event left is dropped, unless somebody is in the way just now.
CREATE FUNCTION weft_drop_journal_periods() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    period   text;
    used     boolean;
    dropped  integer := 0;
BEGIN
    PERFORM set_config('lock_timeout', '100ms', true);
    FOR period IN
        SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'weft.journal'::regclass
          AND c.relname ~ '^journal_[0-9]{4}_[0-9]{2}$'
          AND c.relname < 'journal_' || to_char((weft_now() - interval '1 month') AT TIME ZONE 'UTC', 'YYYY_MM')
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM weft.%I)', period) INTO used;
        CONTINUE WHEN used;
        BEGIN
            LOCK TABLE weft.journal IN ACCESS EXCLUSIVE MODE;
            EXECUTE format('SELECT EXISTS (SELECT FROM weft.%I)', period) INTO used;
            IF NOT used THEN
                EXECUTE format('DROP TABLE weft.%I', period);
                dropped := dropped + 1;
            END IF;
        EXCEPTION WHEN lock_not_available THEN
            NULL;
        END;
    END LOOP;
    RETURN dropped;
END
$$;
