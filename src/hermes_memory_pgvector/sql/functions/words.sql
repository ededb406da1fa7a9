-- The same words: an expression to count them by in CREATE STATISTICS. Whoever may not call it cannot have a plan made with
-- it, so its statistics, which are over all rows, tell nobody else how common a word is.
CREATE OR REPLACE FUNCTION hermes_words(lexemes tsvector) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$ BEGIN RETURN lexemes; END $$;
