-- Those of these themes that the login of this session may not write to.
--
-- A login that may create themes gets those that nobody has ever used, and that nobody else was granted: the first to
-- write there owns it. Two that come at once wait for each other. A theme that was merged into another is that one.
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_claim_themes(wanted text[]) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    granted record;
    refused text[] := ARRAY[]::text[];
    one     text;
BEGIN
    SELECT g.may_write, g.may_create INTO granted FROM {schema}.login_grants AS g WHERE g.login = session_user;
    FOR one IN SELECT DISTINCT w.theme FROM unnest(wanted) AS w (theme) ORDER BY 1 LOOP
        IF EXISTS (SELECT FROM {schema}.theme_aliases AS a WHERE a.old = one) THEN
            refused := refused || one;
            CONTINUE;
        END IF;
        CONTINUE WHEN granted.may_write AND EXISTS (
            SELECT FROM {schema}.login_themes AS t
            WHERE t.login = session_user AND one LIKE {schema}.hermes_theme_pattern(t.theme));
        IF granted.may_write AND granted.may_create AND strpos(one, '*') = 0 AND one <> '' THEN
            PERFORM pg_advisory_xact_lock(hashtextextended('hermes-claim ' || one, 7));
            IF NOT EXISTS (SELECT FROM {schema}.login_themes AS t WHERE one LIKE {schema}.hermes_theme_pattern(t.theme))
               AND NOT EXISTS (SELECT FROM {schema}.theme_growth AS g WHERE g.agent_identity = one)
               AND NOT EXISTS (SELECT FROM {schema}.theme_aliases AS a WHERE a.new = one)
               -- What became of it may be there without a row of its own: what was removed, and what was asked.
               AND NOT EXISTS (SELECT FROM {schema}.memory_operations AS o WHERE o.agent_identity = one)
               AND NOT EXISTS (SELECT FROM {schema}.delegations AS d WHERE d.agent_identity = one)
               AND NOT EXISTS (SELECT FROM {schema}.recall_log AS r WHERE r.agent_identity = one)
               AND NOT EXISTS (SELECT FROM {schema}.quarantines AS q WHERE q.theme = one) THEN
                INSERT INTO {schema}.login_themes (login, theme, is_begun) VALUES (session_user, one, true);
                CONTINUE;
            END IF;
        END IF;
        refused := refused || one;
    END LOOP;
    RETURN refused;
END $$;
