-- Pairs and single signs of scripts written without spaces.
CREATE OR REPLACE FUNCTION hermes_unspaced_lexemes(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(pair.sign) || ':1A', ' '), '')::tsvector
    FROM regexp_matches(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+', 'g') AS run,
         generate_series(1, length(run[1])) AS place,
         LATERAL (VALUES (substr(run[1], place, 1)), (substr(run[1], place, 2))) AS pair (sign)
    $$;
