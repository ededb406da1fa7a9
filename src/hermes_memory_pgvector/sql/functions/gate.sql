-- What whoever stores something has to know: other names of themes, the keys of the tombstones if there are any (this
-- database's, and those that receipts from elsewhere brought along), and what the login of this session was granted;
-- `login` is null for the fleet's own.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_gate(
    OUT aliases jsonb, OUT keys bytea[], OUT until timestamptz, OUT parts_until timestamptz, OUT login text, OUT may_write boolean, OUT may_create boolean
)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    SELECT g.login, g.may_write, g.may_create INTO login, may_write, may_create
    FROM {schema}.login_grants AS g WHERE g.login = session_user;
    SELECT jsonb_object_agg(a.old, a.new) INTO aliases FROM {schema}.theme_aliases AS a
    WHERE hermes_gate.login IS NULL OR EXISTS (
        SELECT FROM {schema}.login_themes AS t
        WHERE t.login = session_user AND a.new LIKE {schema}.hermes_theme_pattern(t.theme));
    until := (SELECT max(t.forgotten_at) FROM {schema}.tombstones AS t);
    IF until IS NOT NULL THEN
        parts_until := (SELECT max(t.forgotten_at) FROM {schema}.tombstones AS t WHERE t.part_length IS NOT NULL);
        keys := ARRAY(SELECT k.key FROM {schema}.erasure_key AS k
                      UNION SELECT r.key FROM {schema}.erasure_receipts AS r WHERE r.key IS NOT NULL);
    END IF;
END $$;
