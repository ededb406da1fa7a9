-- The functions that tables and statements use, made before the tables and again whenever this file changes.
--
-- Every body is bound to what it names when it is created, so that a dump restores whatever the search_path is. None reads a
-- table. What a generated column or an index is made of (hermes_digest, hermes_lexemes) must not change its results without
-- a migration that makes the column or the index anew.

-- The identity of a text at any length; sha256 also works where md5 is forbidden by policy.
CREATE OR REPLACE FUNCTION hermes_digest(content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN sha256(convert_to(content, 'UTF8'));

-- The identity of words said by a role: 16 bytes are plenty within one session.
CREATE OR REPLACE FUNCTION hermes_turn_digest(role text, content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN substr(sha256(convert_to(role || ':' || content, 'UTF8')), 1, 16);

-- Equal for equal texts: lets a search fold identical turns without reading them. Stored in the vector tables.
CREATE OR REPLACE FUNCTION hermes_content_hash(content text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN hashtextextended(content, 0);

-- Themes that only they themselves may see. Not STRICT: only so can Postgres expand it in place. The first letter tells
-- most themes apart at a fifth of the price, which counts where all rows are looked at.
CREATE OR REPLACE FUNCTION hermes_is_private(theme text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ascii(theme) IN (ascii('_'), ascii('d'), ascii('g'))
       AND (theme = '_bench' OR starts_with(theme, 'dm-') OR starts_with(theme, 'group-'));

-- A lexeme as the text form of tsvector and tsquery wants it. E'' literals mean the same in every session.
CREATE OR REPLACE FUNCTION hermes_quote_lexeme(lexeme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN '''' || replace(replace(lexeme, E'\\', E'\\\\'), '''', '''''') || '''';

-- Pairs and single signs of scripts written without spaces.
CREATE OR REPLACE FUNCTION hermes_unspaced_lexemes(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(pair.sign) || ':1A', ' '), '')::tsvector
            FROM regexp_matches(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+', 'g') AS run (letters),
                 generate_series(1, length(run.letters[1])) AS place,
                 LATERAL (VALUES (substr(run.letters[1], place, 1)), (substr(run.letters[1], place, 2))) AS pair (sign));
