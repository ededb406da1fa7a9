-- Estimates of a plan come from statistics over all rows, whoever asks: with patience, a login finds out from them what the
-- rows of others hold. So there are none of what was said, of its digests and vectors, and of what quotes it; names,
-- numbers and times remain, which plans need.
DO $$
DECLARE
    known record;
BEGIN
    FOR known IN
        SELECT c.oid::regclass AS place, c.relname::text AS relation, a.attname::text AS name, a.attnum AS number, c.relkind = 'i' AS is_index
        FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
          AND CASE WHEN c.relkind IN ('r', 'p')
                   THEN a.attname IN ('content', 'old_text', 'previous', 'query', 'metadata', 'lexemes', 'digest', 'content_hash',
                                      'task_digest', 'entries', 'withheld', 'payload', 'reason', 'hits', 'subject', 'counts',
                                      'embedding', 'code')
                   ELSE c.relname = 'memory_entries_content_key' AND a.attname = 'hermes_digest' END
    LOOP
        EXECUTE format('ALTER %s %s ALTER COLUMN %s SET STATISTICS 0', CASE WHEN known.is_index THEN 'INDEX' ELSE 'TABLE' END,
                       known.place, CASE WHEN known.is_index THEN known.number::text ELSE quote_ident(known.name) END);
        -- Before Postgres 18 only a superuser can take away those that are there.
        IF current_setting('server_version_num')::integer >= 180000 AND NOT known.is_index THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', current_schema(), known.relation, known.name);
        ELSIF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
            DELETE FROM pg_statistic WHERE starelid = known.place::oid AND staattnum = known.number;
        END IF;
    END LOOP;
    -- How common each word is, searches have to know. It is counted of something that only the owner can ask for.
    CREATE STATISTICS conversations_words ON (hermes_words(lexemes)) FROM conversations;
    CREATE STATISTICS memory_entries_words ON (hermes_words(lexemes)) FROM memory_entries;
    ALTER STATISTICS conversations_words SET STATISTICS 400;
    ALTER STATISTICS memory_entries_words SET STATISTICS 400;
END
$$;
