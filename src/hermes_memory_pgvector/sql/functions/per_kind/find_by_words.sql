-- The rows whose words tell most of a question, and how much each of its terms counts among the rows searched.
--
-- Every term is looked up by itself, the rarest first. That gives its exact rarity, and a bound: a term that more than
-- 400 rows contain selects nothing by itself, and the look-up ends when 1,000 rows are gathered.
CREATE OR REPLACE FUNCTION hermes_find_by_words(
    source {text_row}, theme text, all_themes boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], weights real[], wanted integer, excluded bigint[] DEFAULT NULL,
    OUT themes text[], OUT ids bigint[], OUT idf double precision[], OUT is_absent boolean[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
    AS $$
DECLARE
    rows_searched double precision;
    common_from   integer;
    asked         CONSTANT tsquery[] := queries::tsquery[];
    fractions     CONSTANT real[] := hermes_term_fractions({table_name}, terms);
    rare          integer[];
    common        integer[];
    found         record;
    weighed       record;
BEGIN
    IF coalesce(cardinality(terms), 0) = 0 THEN
        RETURN;
    END IF;
    rows_searched := hermes_count_rows(source, theme, all_themes);
    -- A word that a third of the rows contain tells none of them apart.
    common_from := least(400, greatest(60, rows_searched / 3));
    -- The rarity of words in a handful of rows says little.
    rows_searched := greatest(rows_searched, 100);
    -- What is known to be common is not even looked up: it could only be found too often.
    SELECT array_agg(t.place::integer ORDER BY t.fraction, t.place) FILTER (WHERE t.fraction * rows_searched <= common_from),
           coalesce(array_agg(t.place::integer ORDER BY t.fraction, t.place)
                    FILTER (WHERE t.fraction * rows_searched > common_from), ARRAY[]::integer[])
    INTO rare, common FROM unnest(fractions) WITH ORDINALITY AS t (fraction, place);
    SELECT l.hits, l.themes, l.ids INTO found
    FROM hermes_look_up_terms(
        source, theme, all_themes, narrow, since, until, asked, rare[1:24], common_from, 1000, excluded) AS l;
    SELECT w.* INTO weighed
    FROM hermes_weigh_terms(terms, weights, fractions, rows_searched, common_from, rare, common, 24, found.hits, 1000) AS w;
    idf := weighed.idf;
    is_absent := weighed.is_absent;
    IF weighed.has_hits OR cardinality(weighed.common_terms) = 0 THEN
        SELECT array_agg(best.theme), array_agg(best.id) INTO themes, ids
        FROM (SELECT coalesce(min(h.seen_in), theme) AS theme, h.id
              FROM unnest(found.hits, found.themes, found.ids) AS h (term, seen_in, id)
              WHERE weighed.pull[h.term] > 0
              GROUP BY h.id ORDER BY sum(weighed.pull[h.term]) DESC, h.id DESC LIMIT wanted) AS best;
    ELSE
        SELECT array_agg(coalesce(l.seen_in, theme)), array_agg(l.id) INTO themes, ids
        FROM (SELECT unnest(c.themes) AS seen_in, unnest(c.ids) AS id
              FROM hermes_look_up_common(source, theme, all_themes, narrow, since, until,
                       ARRAY(SELECT asked[t.term] FROM unnest(weighed.common_terms) WITH ORDINALITY AS t (term, place)
                             ORDER BY t.place LIMIT 5), wanted, excluded) AS c) AS l;
    END IF;
END $$;
