-- A lexeme as the text form of tsvector and tsquery wants it. E'' literals mean the same in every session.
CREATE OR REPLACE FUNCTION hermes_quote_lexeme(lexeme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '''' || replace(replace(lexeme, E'\\', E'\\\\'), '''', '''''') || '''' $$;
