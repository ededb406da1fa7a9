-- Which of these hashes are tombstones, and until when is what they stand for forgotten?
--
-- A login that was granted single themes cannot list the tombstones; it can ask for what it is about to store.
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_forgotten(hashes bytea[]) RETURNS TABLE (hash bytea, until timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT t.hash, max(t.forgotten_at) FROM {schema}.tombstones AS t WHERE t.hash = ANY (hashes) GROUP BY t.hash $$;
