-- A database as pg_dump saw it under migration 0001: one run that was killed in the middle of a node's body, with a tag and
-- a log line, and one that was queued and never claimed. Never changed; a later migration has to bring it up to date.
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE SCHEMA weft;

CREATE FUNCTION weft.weft_make_journal_periods() RETURNS integer
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION weft.weft_now() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$
    SELECT clock_timestamp() + coalesce(nullif(current_setting('weft.clock_offset', true), ''), '0')::interval
$$;

CREATE FUNCTION weft.weft_run_id() RETURNS uuid
    LANGUAGE sql
    AS $$
    SELECT weft_uuid_at((extract(epoch FROM weft_now()) * 1000000)::bigint,
                        substr(replace(gen_random_uuid()::text, '-', ''), 17))
$$;

CREATE FUNCTION weft.weft_uuid_at(micros bigint, tail text) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$
    SELECT (lpad(to_hex(micros / 1000), 12, '0')
            || to_hex(28672 + (micros % 1000) * 4096 / 1000)
            || tail)::uuid
$$;

CREATE TABLE weft.journal (
    project integer NOT NULL,
    first integer NOT NULL,
    run uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    count integer NOT NULL,
    events json NOT NULL
)
PARTITION BY RANGE (run);

CREATE TABLE weft.journal_2026_11 (
    project integer CONSTRAINT journal_project_not_null NOT NULL,
    first integer CONSTRAINT journal_first_not_null NOT NULL,
    run uuid CONSTRAINT journal_run_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT journal_at_not_null NOT NULL,
    count integer CONSTRAINT journal_count_not_null NOT NULL,
    events json CONSTRAINT journal_events_not_null NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE weft.journal_2026_12 (
    project integer CONSTRAINT journal_project_not_null NOT NULL,
    first integer CONSTRAINT journal_first_not_null NOT NULL,
    run uuid CONSTRAINT journal_run_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT journal_at_not_null NOT NULL,
    count integer CONSTRAINT journal_count_not_null NOT NULL,
    events json CONSTRAINT journal_events_not_null NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE weft.journal_2027_01 (
    project integer CONSTRAINT journal_project_not_null NOT NULL,
    first integer CONSTRAINT journal_first_not_null NOT NULL,
    run uuid CONSTRAINT journal_run_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT journal_at_not_null NOT NULL,
    count integer CONSTRAINT journal_count_not_null NOT NULL,
    events json CONSTRAINT journal_events_not_null NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE weft.journal_2027_02 (
    project integer CONSTRAINT journal_project_not_null NOT NULL,
    first integer CONSTRAINT journal_first_not_null NOT NULL,
    run uuid CONSTRAINT journal_run_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT journal_at_not_null NOT NULL,
    count integer CONSTRAINT journal_count_not_null NOT NULL,
    events json CONSTRAINT journal_events_not_null NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE weft.journal_default (
    project integer CONSTRAINT journal_project_not_null NOT NULL,
    first integer CONSTRAINT journal_first_not_null NOT NULL,
    run uuid CONSTRAINT journal_run_not_null NOT NULL,
    at timestamp with time zone CONSTRAINT journal_at_not_null NOT NULL,
    count integer CONSTRAINT journal_count_not_null NOT NULL,
    events json CONSTRAINT journal_events_not_null NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE weft.migrations (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE weft.notices (
    project integer NOT NULL,
    run uuid NOT NULL,
    worker uuid NOT NULL
);

CREATE TABLE weft.programs (
    project integer NOT NULL,
    hash text NOT NULL,
    text json NOT NULL
);

CREATE TABLE weft.projects (
    id integer NOT NULL,
    key text NOT NULL,
    name text NOT NULL
);

ALTER TABLE weft.projects ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME weft.projects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE weft.ready (
    project integer NOT NULL,
    run uuid NOT NULL,
    worker uuid
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.01');

CREATE TABLE weft.run_aftermath (
    project integer NOT NULL,
    run uuid NOT NULL,
    number integer NOT NULL,
    at timestamp with time zone NOT NULL,
    event json NOT NULL
);

ALTER TABLE weft.run_aftermath ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME weft.run_aftermath_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE weft.runs (
    project integer NOT NULL,
    id uuid NOT NULL,
    program text NOT NULL,
    entry text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    status text NOT NULL,
    worker uuid,
    lease integer NOT NULL,
    reason text,
    cause json,
    error text,
    next_seq integer NOT NULL,
    open_firings json NOT NULL,
    CONSTRAINT runs_check CHECK (((ended_at IS NULL) = (status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text])))),
    CONSTRAINT runs_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'waiting'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01');

CREATE TABLE weft.scopes (
    project integer NOT NULL,
    id uuid NOT NULL,
    parent uuid,
    depth integer DEFAULT 0 NOT NULL,
    has_children boolean DEFAULT false NOT NULL,
    effective_deadline timestamp with time zone,
    ended_at timestamp with time zone,
    ended_by uuid
)
WITH (fillfactor='80');

CREATE TABLE weft.stops (
    project integer NOT NULL,
    id bigint NOT NULL,
    run uuid NOT NULL,
    node text NOT NULL,
    frames text NOT NULL,
    call integer NOT NULL,
    tag text NOT NULL,
    include boolean NOT NULL,
    reaches_self boolean NOT NULL,
    cutoff bigint,
    state text DEFAULT 'queued'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    due timestamp with time zone NOT NULL,
    CONSTRAINT stops_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'done'::text])))
);

ALTER TABLE weft.stops ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME weft.stops_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE weft.tag_numbers
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE weft.tags (
    project integer NOT NULL,
    number bigint NOT NULL,
    run uuid NOT NULL,
    live boolean DEFAULT true NOT NULL,
    tag text NOT NULL
);

CREATE TABLE weft.workers (
    id uuid NOT NULL,
    number integer NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    projects integer[] NOT NULL,
    lease interval NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    lock_is_proof boolean DEFAULT false NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
)
WITH (fillfactor='50');

ALTER TABLE weft.workers ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME weft.workers_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY weft.journal ATTACH PARTITION weft.journal_2026_11 FOR VALUES FROM ('01a19467-e800-0000-0000-000000000000') TO ('01a22ee6-b000-0000-0000-000000000000');

ALTER TABLE ONLY weft.journal ATTACH PARTITION weft.journal_2026_12 FOR VALUES FROM ('01a22ee6-b000-0000-0000-000000000000') TO ('01a2ce8b-d400-0000-0000-000000000000');

ALTER TABLE ONLY weft.journal ATTACH PARTITION weft.journal_2027_01 FOR VALUES FROM ('01a2ce8b-d400-0000-0000-000000000000') TO ('01a36e30-f800-0000-0000-000000000000');

ALTER TABLE ONLY weft.journal ATTACH PARTITION weft.journal_2027_02 FOR VALUES FROM ('01a36e30-f800-0000-0000-000000000000') TO ('01a3fe63-0800-0000-0000-000000000000');

ALTER TABLE ONLY weft.journal ATTACH PARTITION weft.journal_default DEFAULT;

INSERT INTO weft.journal_2026_11 VALUES (1, 1, '01a22e9b-c9db-7747-a041-7d8fd3122f93', '2026-11-30 22:38:11.419442+00', 4, '[{"kind":"execution_started","project":"weft-test-upgrade","program":"f8bc830b6f7a248a10e2cf1e9bf145f7f374b3c8294833a631e2d0595d2ecd84","entry":"src/main.weft"},{"kind":"node_kicked","node":"name"},{"kind":"node_started","node":"name"},{"kind":"execution_tagged","tags":["half"]}]');
INSERT INTO weft.journal_2026_11 VALUES (1, 5, '01a22e9b-c9db-7747-a041-7d8fd3122f93', '2026-11-30 22:38:11.454141+00', 6, '[{"kind":"port_emitted","node":"name","call":0,"port":"value","value":"world"},{"kind":"node_completed","node":"name"},{"kind":"node_started","node":"early"},{"kind":"node_started","node":"work"},{"kind":"log_line","node":"early","level":"debug","text":"world"},{"kind":"node_completed","node":"early"}]');
INSERT INTO weft.journal_2026_11 VALUES (1, 11, '01a22e9b-c9db-7747-a041-7d8fd3122f93', '2026-11-30 22:38:11.457245+00', 1, '[{"kind":"log_line","node":"work","level":"info","text":"working"}]');
INSERT INTO weft.journal_2026_11 VALUES (1, 1, '01a22e9b-cede-7391-9b2b-106adb9eff61', '2026-11-30 22:38:12.702207+00', 2, '[{"kind":"execution_started","project":"weft-test-upgrade","program":"f8bc830b6f7a248a10e2cf1e9bf145f7f374b3c8294833a631e2d0595d2ecd84","entry":"src/main.weft"},{"kind":"execution_tagged","tags":["queued"]}]');

INSERT INTO weft.migrations VALUES (1, 'runs', 'f9098108d5da9cec76dd991ecbbfa41690ee67c6e9b9c7afc84af3a1ee11362f', '2026-11-30 22:38:10.85211+00');

INSERT INTO weft.programs VALUES (1, 'f8bc830b6f7a248a10e2cf1e9bf145f7f374b3c8294833a631e2d0595d2ecd84', '{"format":1,"entry":"src/main.weft","nodes":[{"id":"name","type":"Text","inputs":[{"name":"value","type":"String","required":true,"literal":"world"}],"outputs":[["value","String",true]]},{"id":"early","type":"Debug","inputs":[{"name":"data","type":"String","required":true,"wired":true}]},{"id":"work","type":"Slow","inputs":[{"name":"text","type":"String","required":true,"wired":true}],"outputs":[["value","String",true]]},{"id":"show","type":"Debug","inputs":[{"name":"data","type":"String","required":true,"wired":true}]}],"edges":[["name","value","early","data"],["name","value","work","text"],["work","value","show","data"]]}');

INSERT INTO weft.projects OVERRIDING SYSTEM VALUE VALUES (1, 'weft-test-upgrade', 'upgrade');

INSERT INTO weft.ready VALUES (1, '01a22e9b-c9db-7747-a041-7d8fd3122f93', '18f2c2f8-9813-427f-ae62-805de9347ce9');
INSERT INTO weft.ready VALUES (1, '01a22e9b-cede-7391-9b2b-106adb9eff61', NULL);

INSERT INTO weft.runs VALUES (1, '01a22e9b-c9db-7747-a041-7d8fd3122f93', 'f8bc830b6f7a248a10e2cf1e9bf145f7f374b3c8294833a631e2d0595d2ecd84', 'src/main.weft', '2026-11-30 22:38:11.419442+00', NULL, 'running', '18f2c2f8-9813-427f-ae62-805de9347ce9', 1, NULL, NULL, NULL, 12, '[["work"]]');
INSERT INTO weft.runs VALUES (1, '01a22e9b-cede-7391-9b2b-106adb9eff61', 'f8bc830b6f7a248a10e2cf1e9bf145f7f374b3c8294833a631e2d0595d2ecd84', 'src/main.weft', '2026-11-30 22:38:12.702207+00', NULL, 'queued', NULL, 0, NULL, NULL, NULL, 3, '[]');

INSERT INTO weft.scopes VALUES (1, '01a22e9b-c9db-7747-a041-7d8fd3122f93', NULL, 0, false, NULL, NULL, NULL);
INSERT INTO weft.scopes VALUES (1, '01a22e9b-cede-7391-9b2b-106adb9eff61', NULL, 0, false, NULL, NULL, NULL);

INSERT INTO weft.tags VALUES (1, 1, '01a22e9b-c9db-7747-a041-7d8fd3122f93', true, 'half');
INSERT INTO weft.tags VALUES (1, 2, '01a22e9b-cede-7391-9b2b-106adb9eff61', true, 'queued');

INSERT INTO weft.workers OVERRIDING SYSTEM VALUE VALUES ('18f2c2f8-9813-427f-ae62-805de9347ce9', 1, 'weft', 'vm', 10796, '{}', '00:01:00', '2026-11-30 22:39:11.292774+00', true, '2026-11-30 22:38:11.292774+00', NULL);

SELECT pg_catalog.setval('weft.projects_id_seq', 1, true);

SELECT pg_catalog.setval('weft.run_aftermath_number_seq', 1, false);

SELECT pg_catalog.setval('weft.stops_id_seq', 1, false);

SELECT pg_catalog.setval('weft.tag_numbers', 2, true);

SELECT pg_catalog.setval('weft.workers_number_seq', 1, true);

ALTER TABLE ONLY weft.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.journal_2026_11
    ADD CONSTRAINT journal_2026_11_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.journal_2026_12
    ADD CONSTRAINT journal_2026_12_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.journal_2027_01
    ADD CONSTRAINT journal_2027_01_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.journal_2027_02
    ADD CONSTRAINT journal_2027_02_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.journal_default
    ADD CONSTRAINT journal_default_pkey PRIMARY KEY (project, run, first);

ALTER TABLE ONLY weft.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);

ALTER TABLE ONLY weft.notices
    ADD CONSTRAINT notices_pkey PRIMARY KEY (project, run, worker);

ALTER TABLE ONLY weft.programs
    ADD CONSTRAINT programs_pkey PRIMARY KEY (project, hash);

ALTER TABLE ONLY weft.projects
    ADD CONSTRAINT projects_key_key UNIQUE (key);

ALTER TABLE ONLY weft.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);

ALTER TABLE ONLY weft.ready
    ADD CONSTRAINT ready_pkey PRIMARY KEY (project, run);

ALTER TABLE ONLY weft.run_aftermath
    ADD CONSTRAINT run_aftermath_pkey PRIMARY KEY (project, run, number);

ALTER TABLE ONLY weft.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (project, id);

ALTER TABLE ONLY weft.scopes
    ADD CONSTRAINT scopes_pkey PRIMARY KEY (project, id);

ALTER TABLE ONLY weft.stops
    ADD CONSTRAINT stops_pkey PRIMARY KEY (project, id);

ALTER TABLE ONLY weft.stops
    ADD CONSTRAINT stops_project_run_node_frames_call_tag_key UNIQUE (project, run, node, frames, call, tag);

ALTER TABLE ONLY weft.tags
    ADD CONSTRAINT tags_pkey PRIMARY KEY (project, tag, run);

ALTER TABLE ONLY weft.workers
    ADD CONSTRAINT workers_number_key UNIQUE (number);

ALTER TABLE ONLY weft.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX notices_of_worker ON weft.notices USING btree (worker);

CREATE INDEX ready_unclaimed ON weft.ready USING btree (project, run) WHERE (worker IS NULL);

CREATE INDEX scopes_children ON weft.scopes USING btree (project, parent) WHERE (parent IS NOT NULL);

CREATE INDEX scopes_due ON weft.scopes USING btree (effective_deadline) WHERE ((effective_deadline IS NOT NULL) AND (ended_at IS NULL));

CREATE INDEX stops_due ON weft.stops USING btree (due) WHERE (state = 'queued'::text);

CREATE INDEX tags_live ON weft.tags USING btree (project, tag, number) WHERE live;

CREATE INDEX tags_of_run ON weft.tags USING btree (project, run);

ALTER INDEX weft.journal_pkey ATTACH PARTITION weft.journal_2026_11_pkey;

ALTER INDEX weft.journal_pkey ATTACH PARTITION weft.journal_2026_12_pkey;

ALTER INDEX weft.journal_pkey ATTACH PARTITION weft.journal_2027_01_pkey;

ALTER INDEX weft.journal_pkey ATTACH PARTITION weft.journal_2027_02_pkey;

ALTER INDEX weft.journal_pkey ATTACH PARTITION weft.journal_default_pkey;

ALTER TABLE ONLY weft.run_aftermath
    ADD CONSTRAINT run_aftermath_project_run_fkey FOREIGN KEY (project, run) REFERENCES weft.runs(project, id) ON DELETE CASCADE;

ALTER TABLE ONLY weft.runs
    ADD CONSTRAINT runs_project_id_fkey FOREIGN KEY (project, id) REFERENCES weft.scopes(project, id) ON DELETE CASCADE;

ALTER TABLE ONLY weft.scopes
    ADD CONSTRAINT scopes_project_parent_fkey FOREIGN KEY (project, parent) REFERENCES weft.scopes(project, id) ON DELETE CASCADE;

ALTER TABLE ONLY weft.stops
    ADD CONSTRAINT stops_project_run_fkey FOREIGN KEY (project, run) REFERENCES weft.runs(project, id) ON DELETE CASCADE;

ALTER TABLE ONLY weft.tags
    ADD CONSTRAINT tags_project_run_fkey FOREIGN KEY (project, run) REFERENCES weft.runs(project, id) ON DELETE CASCADE;
