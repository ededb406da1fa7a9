-- One candidate's rank. All weights of the ranking stand here, in units of coverage; bench/learn_ranking.py learns them.
--
-- similarity counts from `unrelated` on, what unrelated texts can have in this model, up to 1: so one weight serves every
-- model. A row without a vector counts as unrelated. coverage, session_coverage: see hermes_measure_hits.
-- After a hundred half-lives age counts no further: numbers smaller than that are an error in Postgres.
CREATE OR REPLACE FUNCTION hermes_rank(
    similarity real, unrelated real, coverage real, session_coverage real, answers_when boolean, is_in_period boolean,
    is_by_speaker boolean, is_by_author boolean, age interval, half_life_days real
) RETURNS real LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT ((0.7 * coalesce((similarity - unrelated) / nullif(1 - unrelated, 0), 0)
             + coverage
             + 0.5 * session_coverage
             + CASE WHEN is_in_period THEN 0.5::double precision ELSE 0 END
             + CASE WHEN is_by_speaker THEN 0.35::double precision ELSE 0 END
             + CASE WHEN answers_when THEN 0.3::double precision ELSE 0 END
             + CASE WHEN is_by_author THEN 0.2::double precision ELSE 0 END)
            * CASE WHEN half_life_days > 0 AND age > interval '0'
                   THEN 0.5 ^ least(extract(epoch FROM age)::double precision / 86400 / half_life_days, 100) ELSE 1 END)::real
    $$;
