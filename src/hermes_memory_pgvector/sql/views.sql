-- Text and current vector side by side, for people who query by hand. A long text has one row per piece.
-- Only this schema's are made anew: another one along the search_path may belong to another installation.
DO $views$
DECLARE
    former regclass;
BEGIN
    FOR former IN SELECT oid FROM pg_class WHERE relkind = 'v' AND relnamespace = quote_ident(current_schema())::regnamespace
                  AND relname IN ('memory_entries_embedded', 'conversations_embedded') LOOP
        EXECUTE format('DROP VIEW %s', former);
    END LOOP;
END
$views$;
CREATE VIEW memory_entries_embedded AS
SELECT entry.id, entry.agent_identity, entry.target, entry.content, entry.created_at, entry.updated_at, entry.metadata,
       vector.chunk, vector.embedding
FROM memory_entries AS entry
LEFT JOIN {memory_vectors} AS vector ON vector.agent_identity = entry.agent_identity AND vector.id = entry.id;
CREATE VIEW conversations_embedded AS
SELECT turn.id, turn.session_id, turn.agent_identity, turn.role, turn.content, turn.ts, turn.metadata,
       turn.parent_session_id, vector.chunk, vector.embedding
FROM conversations AS turn
LEFT JOIN {turn_vectors} AS vector ON vector.agent_identity = turn.agent_identity AND vector.id = turn.id;
-- A view reads as whoever asks, not as its owner; Postgres 14 cannot, so there only the owner may look.
DO $views$ BEGIN
    IF current_setting('server_version_num')::integer >= 150000 THEN
        ALTER VIEW memory_entries_embedded SET (security_invoker = true);
        ALTER VIEW conversations_embedded SET (security_invoker = true);
    END IF;
END
$views$;
