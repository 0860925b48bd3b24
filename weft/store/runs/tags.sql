-- name: lock
-- Step 1. By the key, not by the name: two names may share a key, and then only the key orders them.
SELECT pg_advisory_xact_lock(key) FROM (
    SELECT DISTINCT hashtextextended($1::integer::text || ':' || tag, 0) AS key
    FROM unnest($2::text[]) AS tag
    ORDER BY key
) AS keys

-- name: add
-- Below the tags' locks. Numbers are drawn in the order given; a tag that the run has keeps its old one.
INSERT INTO tags (project, tag, run, number)
SELECT $1, asked.tag, $2, nextval('tag_numbers')
FROM (SELECT tag FROM unnest($3::text[]) WITH ORDINALITY AS t (tag, ord) ORDER BY ord) AS asked
ON CONFLICT (project, tag, run) DO NOTHING
RETURNING tag

-- name: of_run
SELECT tag FROM tags WHERE project = $1 AND run = $2 ORDER BY number

-- name: of_runs
SELECT run, array_agg(tag ORDER BY number) AS tags FROM tags
WHERE project = $1 AND run = ANY ($2::uuid[])
GROUP BY run
