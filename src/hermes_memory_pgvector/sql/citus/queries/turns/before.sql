-- The last two turns stored in each of these sessions, oldest first.
SELECT earlier.theme, earlier.session_id, earlier.content
FROM hermes_turns_before(%(themes)s::text[], %(session_ids)s::text[]) AS earlier
ORDER BY earlier.ts, earlier.id;
