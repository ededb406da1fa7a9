-- The share of a table's rows that contain each term, in the order of the terms; 0 for those not known to be common.
--
-- A login that was granted single themes learns nothing of words that others use: its searches look every term up.
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_term_fractions(source text, terms text[]) RETURNS real[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan
    AS $$
DECLARE
    is_granted CONSTANT boolean := EXISTS (SELECT FROM {schema}.login_grants AS g WHERE g.login = session_user);
BEGIN
    RETURN ARRAY(
        SELECT coalesce((SELECT s.fraction FROM {schema}.lexeme_statistics AS s
                         WHERE NOT is_granted AND s.source = hermes_term_fractions.source AND s.lexeme = t.lexeme), 0)
        FROM unnest(terms) WITH ORDINALITY AS t (lexeme, place) ORDER BY t.place);
END $$;
