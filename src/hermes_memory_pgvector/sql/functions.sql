-- The functions that tables and statements use, made before the tables and anew by every migration.
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

-- A text as it is compared: lower case, without accents, vowel points and width variants.
CREATE OR REPLACE FUNCTION hermes_fold(content text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN content ~ '[^\x01-\x7f]'
                THEN replace(replace(lower(normalize(regexp_replace(
                         normalize(content, NFKD), '[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u0652\u0670]+', '', 'g'), NFC)),
                         '’', ''''), 'ß', 'ss')
                ELSE lower(content) END;

-- Pairs and single signs of scripts written without spaces. A lexeme is cast from text, which allows a megabyte of them.
CREATE OR REPLACE FUNCTION hermes_unspaced_lexemes(folded text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(pair.sign) || ':1', ' '), '')::tsvector
            FROM regexp_matches(left(folded, 20000), '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+', 'g') AS run (letters),
                 generate_series(1, length(run.letters[1])) AS place,
                 LATERAL (VALUES (substr(run.letters[1], place, 1)), (substr(run.letters[1], place, 2))) AS pair (sign));

-- Paths, options, versions, ids: what has a sign inside, as typed but for case. None begins as a marker does.
CREATE OR REPLACE FUNCTION hermes_token_lexemes(folded text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(token.text) || ':1', ' '), '')::tsvector
            FROM regexp_matches(folded, '[^\s"''`(){}\[\]<>,;|!?*“”‘«»…]*[-+#./\\_:=&%$@~^][^\s"''`(){}\[\]<>,;|!?*“”‘«»…]*', 'g') AS found (chunk),
                 LATERAL (VALUES (rtrim(ltrim(found.chunk[1], '~.:=&'), '.:-=/&%$@'))) AS token (text)
            WHERE length(token.text) BETWEEN 2 AND 80
              AND token.text ~ '[-+#./\\_:=&%$@~^]' AND token.text ~ '[^-+#./\\_:=&%$@~^]');

-- English contractions as their first word alone.
CREATE OR REPLACE FUNCTION hermes_spoken(folded text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN strpos(folded, '''') > 0
                THEN regexp_replace(folded, '(?:(?<!ca)(?<!wo)n''t|''(?:t|s|m|d|ll|ve|re))\M', '', 'g') ELSE folded END;

-- The words of a folded text: those of the installation's language (`migrate --language`) without its commonest ones, and
-- what no language's rules take apart. Words of more than 80 signs are no words; they are looked for before they are taken
-- out, because a pattern that counts to 80 everywhere would cost more than all the rest.
CREATE OR REPLACE FUNCTION hermes_folded_lexemes(folded text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector(hermes_language(), regexp_replace(
               CASE WHEN hermes_spoken(folded) ~ '[0-9a-z]{81}' THEN regexp_replace(hermes_spoken(folded), '[0-9a-z]{81,}', ' ', 'g')
                    ELSE hermes_spoken(folded) END,
               '[\x01-\x1f!-/:-@\[-`{-\xbf\u2010-\u206f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+', ' ', 'g'))
           || CASE WHEN folded ~ '[-+#./\\_:=&%$@~^]' THEN hermes_token_lexemes(folded) ELSE ''::tsvector END
           || CASE WHEN folded ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\uffdc\U00020000-\U0003ffff]'
                   THEN hermes_unspaced_lexemes(folded) ELSE ''::tsvector END;

-- The words that a text or a question is found by. Not STRICT: only so can Postgres expand it in place.
CREATE OR REPLACE FUNCTION hermes_text_lexemes(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN hermes_folded_lexemes(hermes_fold(left(content, 100000)));

-- What a row is found by: its own words (weight A), those said before it (weight B), and whose it is.
CREATE OR REPLACE FUNCTION hermes_lexemes(theme text, content text, before text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN array_to_tsvector(
               CASE WHEN hermes_is_private(theme) THEN ARRAY['~=' || theme] ELSE ARRAY['~=' || coalesce(theme, ''), '~all'] END)
        || setweight(hermes_text_lexemes(content), 'A')
        || CASE WHEN before = '' THEN ''::tsvector ELSE setweight(hermes_text_lexemes(before), 'B') END;

-- Whether a row comes from what somebody names: an origin, a kind of tool the turn used, or `untrusted`.
CREATE OR REPLACE FUNCTION hermes_is_from(origin text, untrusted boolean, metadata jsonb, named text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(origin = named, false) OR (untrusted AND named = 'untrusted') OR coalesce(metadata -> 'tools' ? named, false);

-- Whether a row lies within the bounds of a rule of `hidden`; null bounds nothing.
CREATE OR REPLACE FUNCTION hermes_is_within(
    in_theme text, in_session text, from_origin text, since timestamptz, until timestamptz,
    theme text, session_id text, origin text, untrusted boolean, metadata jsonb, at timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (in_theme IS NULL OR theme = in_theme) AND (in_session IS NULL OR session_id = in_session)
       AND (from_origin IS NULL OR hermes_is_from(origin, untrusted, metadata, from_origin))
       AND (since IS NULL OR at >= since) AND (until IS NULL OR at < until);

-- What put a memory there; of memories from before that was noted, the host's own stamps tell as far as there are any.
CREATE OR REPLACE FUNCTION hermes_origin_of_memory(origin text, metadata jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(origin,
                    CASE WHEN metadata ? 'imported_from' THEN 'import' WHEN metadata ? 'write_origin' THEN 'memory_tool' END,
                    'unknown');

-- What put a turn there; of turns from before that was noted, the role tells.
CREATE OR REPLACE FUNCTION hermes_origin_of_turn(origin text, role text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce(origin, CASE role WHEN 'tool' THEN 'delegation' WHEN 'system' THEN 'unknown' ELSE role END);
