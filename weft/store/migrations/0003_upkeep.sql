-- What looking after a database needs: when a program was last started, and tokens for the runs of one tag.

ALTER TABLE programs ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
COMMENT ON COLUMN programs.used_at IS
    'When it was started last, to the hour. One that no run has, and that was not started for long, is deleted.';

ALTER TABLE tokens ADD COLUMN tag text;
COMMENT ON COLUMN tokens.tag IS
    'The token is for runs that carry this tag alone; null: for all.';
