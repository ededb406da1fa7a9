-- How much each term of a question counts, now that the rare ones were looked up.
--
-- terms, weights, fractions: one element per term. total: rows searched. common_from: a term in more rows than that is
-- common. rare, common: places of the terms as far as known before the look-up, the rarest first; the first `term_limit`
-- of the rare ones were looked up, until `hit_limit` rows were found. hits: the place of the term that found each row.
--
-- idf: a term's rarity times its weight. pull: the same, but 0 for a common term, which selects no row by itself.
-- is_absent: looked up, and in no row. common_terms: all that turned out to be common. has_hits: whether a rare term is
-- in any row.
CREATE OR REPLACE FUNCTION hermes_weigh_terms(
    terms text[], weights real[], fractions real[], total double precision, common_from integer,
    rare integer[], common integer[], term_limit integer, hits integer[], hit_limit integer,
    OUT idf double precision[], OUT pull double precision[], OUT is_absent boolean[], OUT common_terms integer[],
    OUT has_hits boolean
)
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    -- The last term that was looked up to the end.
    last      CONSTANT integer := CASE WHEN cardinality(hits) >= hit_limit THEN array_position(rare, hits[hit_limit]) - 1
                                       ELSE term_limit END;
    after     integer := coalesce(cardinality(hits), 0) + 1;
    start     integer;
    term      integer;
    frequency double precision;
BEGIN
    idf := array_fill(0::double precision, ARRAY[cardinality(terms)]);
    pull := idf;
    is_absent := array_fill(false, ARRAY[cardinality(terms)]);
    common_terms := common;
    has_hits := false;
    -- The hits of a term stand together, in the order of look-up.
    FOR number IN REVERSE coalesce(cardinality(rare), 0) .. 1 LOOP
        term := rare[number];
        start := coalesce(array_position(hits, term), after);
        frequency := after - start;
        after := start;
        IF frequency > common_from THEN
            common_terms := term || common_terms;
            CONTINUE;
        END IF;
        is_absent[term] := frequency = 0 AND number <= last;
        has_hits := has_hits OR NOT is_absent[term];
        -- A term the look-ups did not come to is as rare as known.
        IF number > last THEN
            frequency := greatest(frequency, fractions[term] * total);
        END IF;
        -- A token nobody wrote counts nothing: its words stand for it.
        IF frequency > 0 OR terms[term] !~ '[^[:alnum:]]' THEN
            idf[term] := weights[term] * ln(1 + total / greatest(frequency, 0.5));
        END IF;
        pull[term] := idf[term];
    END LOOP;
    -- A word of every row still counts a little.
    FOREACH term IN ARRAY common_terms LOOP
        idf[term] := weights[term] * ln(1 + total / greatest(fractions[term] * total, common_from));
    END LOOP;
END $$;
