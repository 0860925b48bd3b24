-- name: seen
SELECT DISTINCT substring(application_name FROM ' door (.+)$') AS said FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE '% door %' ORDER BY said
