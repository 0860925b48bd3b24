-- A clock that a test sets ahead for every connection at once; the database is thrown away with it.

-- name: own_clock
CREATE TABLE weft.scratch_clock (ahead interval NOT NULL);
INSERT INTO weft.scratch_clock VALUES ('0');
CREATE OR REPLACE FUNCTION weft.weft_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + (SELECT ahead FROM weft.scratch_clock)
$$;

-- name: set_ahead
UPDATE weft.scratch_clock SET ahead = ahead + $1::interval

-- name: busy
SELECT EXISTS (SELECT FROM runs WHERE status IN ('queued', 'running'))

-- name: left_over
SELECT datname FROM pg_database AS d
WHERE datname ~ '^weft_scratch_[0-9]+_[0-9a-f]+$'
  AND split_part(datname, '_', 3)::bigint < extract(epoch FROM clock_timestamp()) - 3600
  AND NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.datname = d.datname)
