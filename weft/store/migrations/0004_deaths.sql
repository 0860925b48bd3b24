-- Workers that die while they drive the same run: maybe it kills them.

ALTER TABLE ready ADD COLUMN deaths smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN ready.deaths IS
    'How many workers died one after another while they drove the run, without its having come any further.';

ALTER TABLE ready ADD COLUMN died_at integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN ready.died_at IS
    'The number of the run''s next event when the last of them died.';
