"""The rules that hold always, one query each; after any test that wrote to the store, none may return a row.

await check_invariants(conn)
"""

from __future__ import annotations

from typing import Any, Final

_EVENTS: Final = """
WITH events AS (
    SELECT j.project, j.run, j.first + e.place::integer - 1 AS number, e.event
    FROM weft.journal AS j, json_array_elements(j.events) WITH ORDINALITY AS e (event, place)
), terminal AS (
    SELECT project, run, number, event FROM events
    WHERE event ->> 'kind' IN ('execution_completed', 'execution_failed', 'execution_cancelled')
)
"""

_FIRINGS: Final = """
, steps AS (
    SELECT project, run,
           jsonb_build_array(event -> 'node') || coalesce((event -> 'frames')::jsonb, '[]') AS firing,
           CASE WHEN event ->> 'kind' = 'node_started' THEN 1 ELSE -1 END AS change
    FROM events
    WHERE event ->> 'kind' IN ('node_started', 'node_completed', 'node_failed', 'node_cancelled', 'node_skipped')
), open AS (
    SELECT project, run, firing FROM steps GROUP BY project, run, firing HAVING sum(change) > 0
)
"""

_TOKENS: Final = """
, registered AS (
    SELECT project, run, wait ->> 'token' AS token
    FROM events, json_array_elements(event -> 'waits') AS wait WHERE event ->> 'kind' = 'suspension_registered'
    UNION ALL
    SELECT project, run, event ->> 'token' FROM events WHERE event ->> 'kind' = 'node_retry_scheduled'
), resolved AS (
    SELECT project, run, event ->> 'token' AS token, number FROM events
    WHERE event ->> 'kind' = 'suspension_resolved'
)
"""

INVARIANTS: Final[dict[str, str]] = {
    "a run has at most one terminal event": _EVENTS
    + "SELECT project, run, count(*) FROM terminal GROUP BY project, run HAVING count(*) > 1",
    "nothing comes after the terminal event": _EVENTS
    + """SELECT e.project, e.run, e.number, e.event FROM events AS e JOIN terminal AS t USING (project, run)
         WHERE e.number > t.number""",
    "a run has ended exactly when its journal says so, and in the same way": _EVENTS
    + """SELECT r.project, r.id, r.status, t.event FROM weft.runs AS r
         LEFT JOIN terminal AS t ON t.project = r.project AND t.run = r.id
         WHERE (r.ended_at IS NOT NULL) IS DISTINCT FROM (t.run IS NOT NULL)
            OR t.event ->> 'kind' <> 'execution_' || r.status""",
    "numbers are dense from 1 and end before next_seq": """
        SELECT j.project, j.run, j.first, j.count FROM (
            SELECT project, run, first, count, json_array_length(events) AS held,
                   lag(first + count, 1, 1) OVER w AS expected,
                   lead(first) OVER w AS next
            FROM weft.journal WINDOW w AS (PARTITION BY project, run ORDER BY first)
        ) AS j JOIN weft.runs AS r ON r.project = j.project AND r.id = j.run
        WHERE j.first <> j.expected OR j.count <> j.held OR (j.next IS NULL AND j.first + j.count <> r.next_seq)""",
    "every run has a journal": """
        SELECT r.project, r.id FROM weft.runs AS r
        WHERE r.next_seq > 1
          AND NOT EXISTS (SELECT FROM weft.journal AS j WHERE j.project = r.project AND j.run = r.id)""",
    "a live run has something to do, an ended one has nothing": """
        SELECT r.project, r.id, r.status, q.worker FROM weft.runs AS r
        LEFT JOIN weft.ready AS q ON q.project = r.project AND q.run = r.id
        WHERE (r.status IN ('queued', 'running')) IS DISTINCT FROM (q.run IS NOT NULL)
        UNION ALL
        SELECT q.project, q.run, 'no run', q.worker FROM weft.ready AS q
        WHERE NOT EXISTS (SELECT FROM weft.runs AS r WHERE r.project = q.project AND r.id = q.run)""",
    "a waiting run waits for something, and nobody drives it": """
        SELECT r.project, r.id, r.worker FROM weft.runs AS r
        WHERE r.status = 'waiting'
          AND (r.worker IS NOT NULL
               OR NOT EXISTS (SELECT FROM weft.waits AS w WHERE w.project = r.project AND w.run = r.id))""",
    "who drives a run is known, so that its lease can lapse": """
        SELECT r.project, r.id, r.worker FROM weft.runs AS r
        WHERE r.status = 'running' AND NOT EXISTS (SELECT FROM weft.workers AS w WHERE w.id = r.worker)""",
    "nothing waits below an ended scope": """
        SELECT w.project, w.run, w.token, r.status FROM weft.waits AS w
        LEFT JOIN weft.runs AS r ON r.project = w.project AND r.id = w.run
        LEFT JOIN weft.scopes AS s ON s.project = w.project AND s.id = w.run
        WHERE r.ended_at IS NOT NULL OR s.ended_at IS NOT NULL OR r.id IS NULL""",
    "a wait was registered in the journal, and nothing there ends it": _EVENTS
    + _TOKENS
    + """SELECT w.project, w.run, w.token FROM weft.waits AS w
         WHERE (w.project, w.run, w.token) NOT IN (SELECT project, run, token FROM registered)
            OR (w.project, w.run, w.token) IN (SELECT project, run, token FROM resolved)""",
    "a wait ends once": _EVENTS
    + _TOKENS
    + "SELECT project, run, token, count(*) FROM resolved GROUP BY project, run, token HAVING count(*) > 1",
    "an end that somebody waits for is going to be told": """
        SELECT w.project, w.run, w.target FROM weft.waits AS w
        LEFT JOIN weft.runs AS r ON r.project = w.project AND r.id = w.target
        WHERE w.target IS NOT NULL AND (r.ended_at IS NOT NULL OR r.id IS NULL)
          AND NOT EXISTS (SELECT FROM weft.outbox AS o WHERE o.project = w.project AND o.run = w.target)""",
    "the run and the ready list name the same worker": """
        SELECT r.project, r.id, r.status, r.worker, q.worker FROM weft.runs AS r
        JOIN weft.ready AS q ON q.project = r.project AND q.run = r.id
        WHERE r.worker IS DISTINCT FROM q.worker OR (r.status = 'queued') <> (q.worker IS NULL)""",
    "a run and its scope end together": """
        SELECT r.project, r.id FROM weft.runs AS r JOIN weft.scopes AS s USING (project, id)
        WHERE (r.ended_at IS NULL) <> (s.ended_at IS NULL) OR (s.ended_at IS NULL) <> (s.ended_by IS NULL)""",
    "nothing is live below an ended scope": """
        SELECT c.project, c.id FROM weft.scopes AS c JOIN weft.scopes AS p ON p.project = c.project AND p.id = c.parent
        WHERE p.ended_at IS NOT NULL AND c.ended_at IS NULL""",
    "a scope knows its depth, its children and the nearest deadline": """
        SELECT c.project, c.id FROM weft.scopes AS c JOIN weft.scopes AS p ON p.project = c.project AND p.id = c.parent
        WHERE c.depth <> p.depth + 1 OR NOT p.has_children
           OR (p.effective_deadline IS NOT NULL
               AND (c.effective_deadline IS NULL OR c.effective_deadline > p.effective_deadline))
        UNION ALL
        SELECT project, id FROM weft.scopes WHERE parent IS NULL AND depth <> 0""",
    "every firing that started in an ended run has its end": _EVENTS
    + _FIRINGS
    + """SELECT o.* FROM open AS o JOIN weft.runs AS r ON r.project = o.project AND r.id = o.run
         WHERE r.ended_at IS NOT NULL""",
    "the open firings of a live run are those that started and have not ended": _EVENTS
    + _FIRINGS
    + """SELECT r.project, r.id, r.open_firings, said.firing, o.firing FROM weft.runs AS r
         CROSS JOIN LATERAL jsonb_array_elements(r.open_firings::jsonb) AS said (firing)
         FULL JOIN open AS o ON o.project = r.project AND o.run = r.id AND o.firing = said.firing
         WHERE said.firing IS NULL OR o.firing IS NULL""",
    "a tag is live exactly while its run is": """
        SELECT t.project, t.tag, t.run FROM weft.tags AS t
        LEFT JOIN weft.runs AS r ON r.project = t.project AND r.id = t.run
        WHERE t.live IS DISTINCT FROM (r.ended_at IS NULL AND r.id IS NOT NULL)""",
    "no two runs share a place in a tag's order": """
        SELECT project, tag, number FROM weft.tags GROUP BY project, tag, number HAVING count(*) > 1""",
    "a stop that is done has left nothing of what it reaches": """
        SELECT s.project, s.id, t.run FROM weft.stops AS s
        JOIN weft.tags AS t ON t.project = s.project AND t.tag = s.tag
        WHERE s.state = 'done' AND t.live AND t.number < s.cutoff AND (t.run <> s.run OR s.reaches_self)""",
}


async def check_invariants(conn: Any) -> None:
    """Raises AssertionError that names the broken rule and shows rows that break it."""
    for rule, query in INVARIANTS.items():
        broken = await conn.fetch(query)
        assert not broken, f"{rule}: {len(broken)} break it, such as {[dict(row) for row in broken[:3]]}"
