-- What a text is found by when nobody worked out better lexemes: plain words, English stems, accents folded.
CREATE OR REPLACE FUNCTION hermes_plain_lexemes(theme text, content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT
    AS $$
    SELECT hermes_theme_lexemes(theme)
        || setweight(to_tsvector('pg_catalog.english', folded), 'A')
        || setweight(to_tsvector('pg_catalog.simple', folded), 'A')
        || CASE WHEN folded ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\uffdc]' THEN hermes_unspaced_lexemes(folded) ELSE ''::tsvector END
    FROM (SELECT lower(normalize(regexp_replace(normalize(left(content, 100000), NFKD), '[\u0300-\u036f\u0640\u064b-\u0652]', '', 'g'), NFC)) AS folded) AS prepared
    $$;
