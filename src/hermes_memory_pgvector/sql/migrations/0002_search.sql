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
    layout         text        NOT NULL DEFAULT 'coded' CHECK (layout IN ('coded')),
    min_similarity real        NOT NULL DEFAULT 0.30,
    candidates     integer     NOT NULL DEFAULT 1600 CHECK (candidates BETWEEN 100 AND 25600),
    is_current     boolean     NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (name, dim)
);
CREATE UNIQUE INDEX embedding_models_current ON embedding_models (is_current) WHERE is_current;

ALTER TABLE memory_entries ADD COLUMN lexemes tsvector;
ALTER TABLE conversations ADD COLUMN lexemes tsvector;
-- A query reads the lexemes of a few hundred rows: in line and uncompressed they cost no detour, and none at insert.
ALTER TABLE memory_entries SET (toast_tuple_target = 8160), ALTER COLUMN lexemes SET STATISTICS 400;
ALTER TABLE conversations SET (toast_tuple_target = 8160), ALTER COLUMN lexemes SET STATISTICS 400;

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
