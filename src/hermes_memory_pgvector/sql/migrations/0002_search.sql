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

-- Where the ranges of a unit vector's numbers meet that its code tells apart, in units of one over the root of their
-- count; few dimensions need more of them.
CREATE FUNCTION hermes_code_bounds(dim integer) RETURNS double precision[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT CASE WHEN dim <= 384 THEN ARRAY[-0.9, -0.3, 0.3, 0.9]
                WHEN dim <= 2048 THEN ARRAY[-0.4, 0.4]
                ELSE ARRAY[0.0] END::double precision[]
    $$;

-- Themes that only they themselves may see. Not STRICT: only so can Postgres expand it in place. The first letter tells
-- most themes apart at a fifth of the price, which counts where all rows are looked at.
CREATE FUNCTION hermes_is_private(theme text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT ascii(theme) IN (ascii('_'), ascii('d'), ascii('g'))
       AND (theme = '_bench' OR starts_with(theme, 'dm-') OR starts_with(theme, 'group-'))
    $$;

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
-- A query reads the lexemes of a few hundred rows: in line and uncompressed they cost no detour, and none at insert.
ALTER TABLE memory_entries SET (toast_tuple_target = 8160), ALTER COLUMN lexemes SET STATISTICS 400;
ALTER TABLE conversations SET (toast_tuple_target = 8160), ALTER COLUMN lexemes SET STATISTICS 400;

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
        -- Every process of a fleet may call this: one at a time is enough.
        IF NOT pg_try_advisory_xact_lock(hashtextextended('hermes_refresh_statistics', 0)) THEN
            RETURN;
        END IF;
        DELETE FROM lexeme_statistics;
        INSERT INTO lexeme_statistics
        SELECT s.tablename, known.lexeme, max(known.fraction)
        FROM pg_catalog.pg_stats AS s,
             unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
        WHERE s.schemaname = current_schema() AND s.attname = 'lexemes'
          AND s.tablename IN ('memory_entries', 'conversations') AND known.lexeme IS NOT NULL
        GROUP BY 1, 2;
    END $$;

-- Raises the number of rows compared exactly for a model whose bits select too roughly; never lowers it.
CREATE FUNCTION hermes_raise_candidates(model_id integer, needed integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
    AS $$ UPDATE embedding_models SET candidates = least(25600, greatest(candidates, needed)) WHERE id = model_id $$;

-- How many rows a theme has, as far as known: of large themes only.
CREATE FUNCTION hermes_theme_size(vectors regclass, source text, theme text) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
    AS $$
    BEGIN
        RETURN (SELECT least(2147483647, s.fraction * c.reltuples) FROM lexeme_statistics AS s, pg_catalog.pg_class AS c
                WHERE s.source = hermes_theme_size.source AND s.lexeme = '~=' || theme AND c.oid = vectors);
    END $$;

-- One candidate's rank: cosine, coverage of the question's words, and what the question says about time and speaker.
CREATE FUNCTION hermes_rank(
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

-- Candidates by words, and how well each candidate's words cover the question: hermes_match_turns, _memories.
--
-- Every term of the question is looked up by itself, inside the theme's part of the index, the rarest first. That gives
-- its exact rarity in this theme, and a bound: a term that more than `too_many` rows contain selects nothing by itself,
-- and the search for candidates ends when enough are gathered. Terms found in the turns before a row count less than
-- its own; long texts, which contain many words by chance, count less. Rows in near_ids (found by meaning) are scored
-- too, whatever their words.
--
-- The theme predicate is written so that only the index on lexemes can serve it: no statistics, cached plan or theme
-- size makes Postgres read a whole theme. The function reads as its owner because row-level security would keep `@@`
-- from using the index; it takes the theme as an argument and never looks outside it. Its statements are planned once
-- per connection, for any theme.
DO $create$
DECLARE
    template text := $template$
CREATE FUNCTION <function>(
    theme text, everywhere boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], own_queries text[], weights real[], near_themes text[], near_ids bigint[], wanted integer
) RETURNS TABLE (agent_identity text, id bigint, coverage real, is_dated boolean, ts timestamptz, twin bigint,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER ROWS 200
    SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = on SET jit = off SET max_parallel_workers_per_gather = 0
    AS $body$
#variable_conflict use_column
DECLARE
    too_many  integer := 400;
    most      CONSTANT integer := 1000;
    inside    tsquery;
    asked     tsquery[];
    places    integer[];
    fractions real[];
    total     double precision;
    idf       double precision[];
    pull      double precision[];
    is_absent boolean[];
    commons   integer[] := '{}';
    last      integer;
    start     integer;
    after     integer;
    term      integer;
    has_hits  boolean := false;
    frequency double precision;
    every     tsquery;
    hit_terms  integer[] := '{}';
    hit_themes text[] := '{}';
    hit_ids    bigint[] := '{}';
BEGIN
    IF cardinality(terms) > 0 THEN
        inside := CASE WHEN NOT everywhere THEN hermes_quote_lexeme('~=' || theme)::tsquery
                       WHEN hermes_is_private(theme) THEN '~all'::tsquery || hermes_quote_lexeme('~=' || theme)::tsquery
                       ELSE '~all'::tsquery END;
        SELECT greatest(c.reltuples, 1) * CASE WHEN everywhere THEN 1 ELSE (
                   SELECT s.fraction FROM lexeme_statistics AS s
                   WHERE s.source = '<table>' AND s.lexeme = '~=' || theme) END,
               known.fractions, known.asked
        INTO total, fractions, asked
        FROM pg_catalog.pg_class AS c, (
            SELECT array_agg(coalesce((SELECT s.fraction FROM lexeme_statistics AS s
                                       WHERE s.source = '<table>' AND s.lexeme = t.lexeme), 0) ORDER BY t.place) AS fractions,
                   array_agg(t.query::tsquery ORDER BY t.place) AS asked
            FROM unnest(terms, queries) WITH ORDINALITY AS t (lexeme, query, place)) AS known
        WHERE c.oid = '<table>'::regclass;
        -- Large themes are known by their marker.
        IF total IS NULL THEN
            SELECT count(*) INTO total
            FROM (SELECT FROM <table> AS r WHERE r.agent_identity = theme LIMIT 2000) AS counted;
        END IF;
        -- A word that a third of the rows contain tells none of them apart.
        too_many := least(too_many, greatest(60, total / 3));
        -- The rarity of words in a handful of rows says little.
        total := greatest(total, 100);

        -- What is known to be common is not even looked up: it could only be found too often.
        SELECT array_agg(t.place::integer ORDER BY t.fraction, t.place) FILTER (WHERE t.fraction * total <= too_many),
               coalesce(array_agg(t.place::integer ORDER BY t.fraction, t.place) FILTER (WHERE t.fraction * total > too_many), '{}')
        INTO places, commons
        FROM unnest(fractions) WITH ORDINALITY AS t (fraction, place);
        SELECT array_agg(h.term), array_agg(h.theme), array_agg(h.id) INTO hit_terms, hit_themes, hit_ids
        FROM (SELECT look.term, f.theme, f.id
              FROM unnest(places[1:24]) AS look (term)
              CROSS JOIN LATERAL (
                  SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM <table> AS r
                  WHERE r.lexemes @@ (inside && asked[look.term]) AND <guard>
                  LIMIT too_many + 1) AS f
              LIMIT most) AS h;

        idf := array_fill(0::double precision, ARRAY[cardinality(terms)]);
        pull := idf;
        is_absent := array_fill(false, ARRAY[cardinality(terms)]);
        -- Hits stand together by term, in the order of look-up; a term the look-ups did not come to is as rare as known.
        after := coalesce(cardinality(hit_terms), 0) + 1;
        last := CASE WHEN after > most THEN array_position(places, hit_terms[most]) - 1 ELSE 24 END;
        FOR number IN REVERSE coalesce(cardinality(places), 0) .. 1 LOOP
            term := places[number];
            start := coalesce(array_position(hit_terms, term), after);
            frequency := after - start;
            after := start;
            IF frequency > too_many THEN
                commons := term || commons;
            ELSE
                is_absent[term] := frequency = 0 AND number <= last;
                IF number > last THEN
                    frequency := greatest(frequency, fractions[term] * total);
                END IF;
                -- A token nobody wrote counts nothing, its words stand for it.
                idf[term] := CASE WHEN frequency = 0 AND terms[term] ~ '[^[:alnum:]]' THEN 0
                                  ELSE weights[term] * ln(1 + total / greatest(frequency, 0.5)) END;
                pull[term] := idf[term];
                has_hits := has_hits OR NOT is_absent[term];
            END IF;
        END LOOP;
        -- A word of every row still counts a little.
        FOREACH term IN ARRAY commons LOOP
            idf[term] := weights[term] * ln(1 + total / greatest(fractions[term] * total, too_many));
        END LOOP;

        -- Only common words: rows with as many of the rarest of them as can be had together, else any with the rarest.
        IF NOT has_hits AND cardinality(commons) > 0 THEN
            FOR number IN REVERSE least(cardinality(commons), 5) .. 1 LOOP
                every := inside;
                FOREACH term IN ARRAY commons[1:number] LOOP
                    every := every && asked[term];
                END LOOP;
                SELECT array_agg(f.theme), array_agg(f.id) INTO hit_themes, hit_ids FROM (
                    SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM <table> AS r
                    WHERE r.lexemes @@ every AND <guard> LIMIT wanted) AS f;
                EXIT WHEN cardinality(hit_ids) > 0;
            END LOOP;
            pull[commons[1]] := 1;
            hit_terms := array_fill(commons[1], ARRAY[coalesce(cardinality(hit_ids), 0)]);
        END IF;
    END IF;

    RETURN QUERY
    WITH found AS (
        SELECT coalesce(min(h.seen_in), theme) AS theme, h.id
        FROM unnest(hit_themes, hit_ids, hit_terms) AS h (seen_in, id, term)
        WHERE pull[h.term] > 0
        GROUP BY h.id ORDER BY sum(pull[h.term]) DESC, h.id DESC LIMIT wanted
    ), chosen AS (
        SELECT f.theme, f.id FROM found AS f
        UNION SELECT coalesce(n.seen_in, theme), n.id FROM unnest(near_themes, near_ids) AS n (seen_in, id)
    ), asked_terms AS MATERIALIZED (
        SELECT a.query, a.own::tsquery AS own, a.idf, a.is_absent
        FROM unnest(asked, own_queries, idf, is_absent) AS a (query, own, idf, is_absent) ORDER BY a.idf DESC LIMIT 24
    )
    SELECT r.agent_identity, r.id,
           (coalesce(words.matched / nullif((SELECT sum(a.idf) FROM asked_terms AS a), 0), 0)
            / (1 + ln(greatest(octet_length(r.content), 360) / 360.0::double precision)))::real,
           r.lexemes @@ '~when'::tsquery, r.<ts>, hermes_twin(r.content), r.<place>, <role>
    FROM chosen AS c
    JOIN <table> AS r ON r.agent_identity = c.theme AND r.id = c.id
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN a.idf ELSE 0.6 * a.idf END)
                   AS matched
        FROM asked_terms AS a WHERE NOT a.is_absent) AS words;
END
$body$
$template$;
    guard text := $guard$CASE WHEN everywhere THEN r.agent_identity = theme OR NOT hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.<place> = ANY (narrow), true)
                     AND coalesce(r.<ts> >= since, true) AND coalesce(r.<ts> < until, true)$guard$;
BEGIN
    template := replace(template, '<guard>', guard);
    EXECUTE replace(replace(replace(replace(replace(template,
        '<function>', 'hermes_match_turns'), '<table>', 'conversations'), '<ts>', 'ts'), '<place>', 'session_id'),
        '<role>', 'r.role');
    EXECUTE replace(replace(replace(replace(replace(template,
        '<function>', 'hermes_match_memories'), '<table>', 'memory_entries'), '<ts>', 'updated_at'), '<place>', 'target'),
        '<role>', 'NULL');
END
$create$;
