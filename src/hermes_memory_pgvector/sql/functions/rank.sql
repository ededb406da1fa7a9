-- One candidate's rank: cosine, coverage of the question's words, and what the question says about time and speaker.
CREATE OR REPLACE FUNCTION hermes_rank(
    similarity real, coverage real, answers_when boolean, is_in_period boolean, is_by_speaker boolean,
    age interval, half_life_days real
) RETURNS real LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT ((0.7 * coalesce(similarity, 0) + coverage
             + CASE WHEN answers_when THEN 0.10::double precision ELSE 0 END
             + CASE WHEN is_in_period THEN 0.20::double precision ELSE 0 END
             + CASE WHEN is_by_speaker THEN 0.15::double precision ELSE 0 END)
            * CASE WHEN half_life_days > 0 AND age > interval '0'
                   THEN 0.5 ^ (extract(epoch FROM age)::double precision / 86400 / half_life_days) ELSE 1 END)::real
    $$;
