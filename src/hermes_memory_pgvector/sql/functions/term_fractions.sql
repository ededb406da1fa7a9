-- The share of a table's rows that contain each term, in the order of the terms; 0 for those not known to be common.
CREATE OR REPLACE FUNCTION hermes_term_fractions(source text, terms text[]) RETURNS real[]
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT ARRAY(
        SELECT coalesce((SELECT s.fraction FROM {schema}.lexeme_statistics AS s
                         WHERE s.source = hermes_term_fractions.source AND s.lexeme = t.lexeme), 0)
        FROM unnest(terms) WITH ORDINALITY AS t (lexeme, place) ORDER BY t.place)
    $$;
