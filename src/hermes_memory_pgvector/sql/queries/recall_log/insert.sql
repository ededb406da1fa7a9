-- Adds to the log of what recall answered.
INSERT INTO recall_log (agent_identity, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds)
SELECT given.theme, given.at, given.session_id, given.caller, given.kind, given.scope, given.query, given.degraded,
       given.hits::jsonb, given.milliseconds
FROM unnest(%(themes)s::text[], %(ats)s::timestamptz[], %(session_ids)s::text[], %(callers)s::text[], %(kinds)s::text[],
            %(scopes)s::text[], %(queries)s::text[], %(degraded)s::text[], %(hits)s::text[], %(milliseconds)s::real[])
     WITH ORDINALITY
     AS given (theme, at, session_id, caller, kind, scope, query, degraded, hits, milliseconds, place)
ORDER BY given.place;
