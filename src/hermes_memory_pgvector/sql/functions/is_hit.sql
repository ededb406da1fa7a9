-- Whether a candidate is a hit: near in meaning, or found by words.
--
-- similarity: null for a row without a vector, which its words alone judge. coverage: the share of the question's words,
-- weighted by rarity, that the row contains; exact_coverage: the same of its exact words (ids, paths, quoted names).
--
-- needs_both: nobody asked, so that silence is better than noise. One shared word in a short prompt, or a vector that is a
-- little nearer than chance, is then not enough; three things are: both together, a similarity well above the floor, or
-- exact words that are most of the question.
CREATE OR REPLACE FUNCTION hermes_is_hit(
    similarity real, coverage real, exact_coverage double precision, min_similarity real, min_coverage real, needs_both boolean
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN needs_both AND similarity IS NOT NULL
                THEN similarity >= min_similarity AND coverage >= min_coverage
                     OR similarity >= min_similarity + 0.2 * (1 - min_similarity)
                     OR coalesce(exact_coverage >= 0.6, false)
                ELSE coalesce(similarity >= min_similarity, false) OR coverage >= min_coverage END
    $$;
