-- The share of this shard's rows that contain each term, in the order of the terms; 0 for those not known to be common.
CREATE OR REPLACE FUNCTION hermes_term_fractions(source text, terms text[]) RETURNS real[]
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
    AS $$
BEGIN
    RETURN ARRAY(
        SELECT coalesce((SELECT s.fraction FROM {shard_lexemes} AS s
                         WHERE s.agent_identity = {key} AND s.lexeme = t.lexeme
                           AND s.source = regexp_replace(hermes_term_fractions.source, '_[0-9]+$', '')), 0)
        FROM unnest(terms) WITH ORDINALITY AS t (lexeme, place) ORDER BY t.place);
END $$;
