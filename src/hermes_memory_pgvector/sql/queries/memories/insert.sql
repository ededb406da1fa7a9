-- Adds entries to a theme, the muted ones without words to find them by; answers the id of each.
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, metadata, lexemes, muted_at, origin,
                            home_id, trust)
SELECT %(theme)s, %(target)s, new.content, new.created_at, new.updated_at, new.metadata::jsonb,
       CASE WHEN new.muted_at IS NULL THEN new.lexemes ELSE '' END::tsvector, new.muted_at,
       new.origin, nullif(new.home_id, ''), new.trust
FROM unnest(%(contents)s::text[], %(created)s::timestamptz[], %(updated)s::timestamptz[], %(metadata)s::text[],
            %(lexemes)s::text[], %(muted)s::timestamptz[], %(origins)s::text[], %(home_ids)s::text[], %(trusts)s::text[])
     WITH ORDINALITY AS new (content, created_at, updated_at, metadata, lexemes, muted_at, origin, home_id, trust, place)
ORDER BY new.place
RETURNING content, id;
