-- What makes memories and turns findable: embedding models, lexemes in one index with their theme, ranking.
--
-- Lexemes come from searchtext.py. Rows that arrive without (typed by hand, adopted from another schema) get a plainer
-- set from hermes_plain_lexemes by trigger, so that no row is invisible to words. Markers start with '~', which no
-- word does: '~=<theme>' keeps a search inside its theme's part of the index, '~all' is on every row that scope 'all'
-- may see, '~when' on rows that speak of a time. They speed a search up; the theme predicate is what guards it.

CREATE TABLE embedding_models (
    id             integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text        NOT NULL,
    dim            integer     NOT NULL CHECK (dim BETWEEN 1 AND 4000),
    layout         text        NOT NULL GENERATED ALWAYS AS (CASE WHEN dim <= 384 THEN 'covering' ELSE 'coded' END) STORED,
    min_similarity real        NOT NULL DEFAULT 0.30,
    candidates     integer     NOT NULL DEFAULT 400 CHECK (candidates BETWEEN 100 AND 6400),
    is_current     boolean     NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (name, dim)
);
CREATE UNIQUE INDEX embedding_models_current ON embedding_models (is_current) WHERE is_current;

-- Themes that only they themselves may see.
CREATE FUNCTION hermes_is_private(theme text) RETURNS boolean
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT theme = '_bench' OR starts_with(theme, 'dm-') OR starts_with(theme, 'group-') $$;

-- Equal for equal texts: lets a search fold identical turns without reading them.
CREATE FUNCTION hermes_twin(content text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.hashtextextended(content, 0) $$;

CREATE FUNCTION hermes_quote_lexeme(lexeme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''' $$;

-- The markers of a theme's rows.
CREATE FUNCTION hermes_theme_lexemes(theme text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT array_to_tsvector(CASE WHEN hermes_is_private(theme) THEN ARRAY['~=' || theme]
                                        ELSE ARRAY['~=' || theme, '~all'] END) $$;

-- Pairs and single signs of scripts written without spaces.
CREATE FUNCTION hermes_unspaced_lexemes(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(pair.sign) || ':1A', ' '), '')::tsvector
    FROM regexp_matches(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+', 'g') AS run,
         generate_series(1, length(run[1])) AS place,
         LATERAL (VALUES (substr(run[1], place, 1)), (substr(run[1], place, 2))) AS pair (sign)
    $$;

-- What a text is found by when nobody worked out better lexemes: plain words, English stems, accents folded.
CREATE FUNCTION hermes_plain_lexemes(theme text, content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT
    AS $$
    SELECT hermes_theme_lexemes(theme)
        || setweight(to_tsvector('pg_catalog.english', folded), 'A')
        || setweight(to_tsvector('pg_catalog.simple', folded), 'A')
        || CASE WHEN folded ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\uffdc]' THEN hermes_unspaced_lexemes(folded) ELSE ''::tsvector END
    FROM (SELECT lower(normalize(regexp_replace(normalize(left(content, 100000), NFKD), '[\u0300-\u036f\u0640\u064b-\u0652]', '', 'g'), NFC)) AS folded) AS prepared
    $$;

ALTER TABLE memory_entries ADD COLUMN lexemes tsvector;
ALTER TABLE conversations ADD COLUMN lexemes tsvector;
-- A query reads the lexemes of a few hundred rows: in line and uncompressed they cost no detour.
ALTER TABLE memory_entries ALTER COLUMN lexemes SET STORAGE MAIN, ALTER COLUMN lexemes SET STATISTICS 400;
ALTER TABLE conversations ALTER COLUMN lexemes SET STORAGE MAIN, ALTER COLUMN lexemes SET STATISTICS 400;

CREATE FUNCTION hermes_fill_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$ BEGIN NEW.lexemes := hermes_plain_lexemes(NEW.agent_identity, NEW.content); RETURN NEW; END $$;
CREATE FUNCTION hermes_move_lexemes() RETURNS trigger
    LANGUAGE plpgsql SET search_path FROM CURRENT
    AS $$
    BEGIN
        NEW.lexemes := ts_delete(NEW.lexemes, ARRAY['~=' || OLD.agent_identity, '~all']) || hermes_theme_lexemes(NEW.agent_identity);
        RETURN NEW;
    END $$;

CREATE TRIGGER lexemes_of_new BEFORE INSERT ON memory_entries
    FOR EACH ROW WHEN (NEW.lexemes IS NULL) EXECUTE FUNCTION hermes_fill_lexemes();
CREATE TRIGGER lexemes_of_edited BEFORE UPDATE OF content ON memory_entries
    FOR EACH ROW WHEN (NEW.content IS DISTINCT FROM OLD.content AND NEW.lexemes IS NOT DISTINCT FROM OLD.lexemes)
    EXECUTE FUNCTION hermes_fill_lexemes();
CREATE TRIGGER lexemes_of_moved BEFORE UPDATE OF agent_identity ON memory_entries
    FOR EACH ROW WHEN (NEW.agent_identity IS DISTINCT FROM OLD.agent_identity) EXECUTE FUNCTION hermes_move_lexemes();
CREATE TRIGGER lexemes_of_new BEFORE INSERT ON conversations
    FOR EACH ROW WHEN (NEW.lexemes IS NULL) EXECUTE FUNCTION hermes_fill_lexemes();
CREATE TRIGGER lexemes_of_edited BEFORE UPDATE OF content ON conversations
    FOR EACH ROW WHEN (NEW.content IS DISTINCT FROM OLD.content AND NEW.lexemes IS NOT DISTINCT FROM OLD.lexemes)
    EXECUTE FUNCTION hermes_fill_lexemes();
CREATE TRIGGER lexemes_of_moved BEFORE UPDATE OF agent_identity ON conversations
    FOR EACH ROW WHEN (NEW.agent_identity IS DISTINCT FROM OLD.agent_identity) EXECUTE FUNCTION hermes_move_lexemes();

UPDATE memory_entries SET lexemes = hermes_plain_lexemes(agent_identity, content) WHERE lexemes IS NULL;
UPDATE conversations SET lexemes = hermes_plain_lexemes(agent_identity, content) WHERE lexemes IS NULL;

CREATE INDEX memory_entries_lexemes ON memory_entries USING gin (lexemes) WITH (gin_pending_list_limit = 4096);
CREATE INDEX conversations_lexemes ON conversations USING gin (lexemes) WITH (gin_pending_list_limit = 4096);

-- How common a lexeme is, as far as it is common at all: decides which words of a question are looked up first.
CREATE TABLE lexeme_statistics (
    source   text NOT NULL CHECK (source IN ('memory_entries', 'conversations')),
    lexeme   text NOT NULL,
    fraction real NOT NULL,
    PRIMARY KEY (source, lexeme) INCLUDE (fraction)
);

-- Takes over what ANALYZE knows; cheap, and called by upkeep after a table has grown.
CREATE FUNCTION hermes_refresh_statistics() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
    AS $$
    BEGIN
        DELETE FROM lexeme_statistics;
        INSERT INTO lexeme_statistics
        SELECT s.tablename, known.lexeme, max(known.fraction)
        FROM pg_catalog.pg_stats AS s,
             unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
        WHERE s.schemaname = current_schema() AND s.attname = 'lexemes'
          AND s.tablename IN ('memory_entries', 'conversations') AND known.lexeme IS NOT NULL
        GROUP BY 1, 2;
    END $$;
