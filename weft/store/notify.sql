-- name: publish
SELECT pg_notify('weft', payload) FROM unnest($1::text[]) AS payload
