-- What runs with the owner's rights; made anew by every migration, in the schema that is migrated.
--
-- Whoever calls these functions must not be able to choose what they mean. Temporary tables are found before all others
-- unless pg_temp is named, and a function or operator whose argument types fit better wins wherever on the search_path it
-- is. So the search_path has Postgres's own catalog alone, with pg_temp at its end, and everything of ours is named with
-- its schema.
--
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
    schema     text := quote_ident(current_schema());
    -- Takes over what ANALYZE knows; cheap, and called by upkeep after a table has grown.
    statistics text := $template$
CREATE OR REPLACE FUNCTION <schema>.hermes_refresh_statistics() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $body$
    BEGIN
        -- Every process of a fleet may call this: one at a time is enough.
        IF NOT pg_try_advisory_xact_lock(hashtextextended('hermes_refresh_statistics', 0)) THEN
            RETURN;
        END IF;
        DELETE FROM <schema>.lexeme_statistics;
        INSERT INTO <schema>.lexeme_statistics
        SELECT s.tablename, known.lexeme, max(known.fraction)
        FROM pg_catalog.pg_stats AS s,
             unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
        WHERE s.schemaname = <schema name> AND s.attname = 'lexemes'
          AND s.tablename IN ('memory_entries', 'conversations') AND known.lexeme IS NOT NULL
        GROUP BY 1, 2;
    END $body$
$template$;
    -- Raises the number of rows compared exactly for a model whose bits select too roughly; never lowers it.
    candidates text := $template$
CREATE OR REPLACE FUNCTION <schema>.hermes_raise_candidates(model_id integer, needed integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $body$
    UPDATE <schema>.embedding_models SET candidates = least(25600, greatest(candidates, needed)) WHERE id = model_id
    $body$
$template$;
    match      text := $template$
CREATE OR REPLACE FUNCTION <schema>.<function>(
    theme text, everywhere boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], own_queries text[], weights real[], near_themes text[], near_ids bigint[], wanted integer
) RETURNS TABLE (agent_identity text, id bigint, coverage real, is_dated boolean, ts timestamptz, twin bigint,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER ROWS 200
    SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan
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
        inside := CASE WHEN NOT everywhere THEN <schema>.hermes_quote_lexeme('~=' || theme)::tsquery
                       WHEN <schema>.hermes_is_private(theme) THEN '~all'::tsquery || <schema>.hermes_quote_lexeme('~=' || theme)::tsquery
                       ELSE '~all'::tsquery END;
        SELECT greatest(c.reltuples, 1) * CASE WHEN everywhere THEN 1 ELSE (
                   SELECT s.fraction FROM <schema>.lexeme_statistics AS s
                   WHERE s.source = '<table>' AND s.lexeme = '~=' || theme) END,
               known.fractions, known.asked
        INTO total, fractions, asked
        FROM pg_catalog.pg_class AS c, (
            SELECT array_agg(coalesce((SELECT s.fraction FROM <schema>.lexeme_statistics AS s
                                       WHERE s.source = '<table>' AND s.lexeme = t.lexeme), 0) ORDER BY t.place) AS fractions,
                   array_agg(t.query::tsquery ORDER BY t.place) AS asked
            FROM unnest(terms, queries) WITH ORDINALITY AS t (lexeme, query, place)) AS known
        WHERE c.relname = '<table>' AND c.relnamespace = quote_ident(<schema name>)::regnamespace;
        -- Large themes are known by their marker.
        IF total IS NULL THEN
            SELECT count(*) INTO total
            FROM (SELECT FROM <schema>.<table> AS r WHERE r.agent_identity = theme LIMIT 2000) AS counted;
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
                  SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM <schema>.<table> AS r
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
                    SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM <schema>.<table> AS r
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
           r.lexemes @@ '~when'::tsquery, r.<ts>, <schema>.hermes_twin(r.content), r.<place>, <role>
    FROM chosen AS c
    JOIN <schema>.<table> AS r ON r.agent_identity = c.theme AND r.id = c.id
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN a.idf ELSE 0.6 * a.idf END)
                   AS matched
        FROM asked_terms AS a WHERE NOT a.is_absent) AS words;
END
$body$
$template$;
    guard      text := $guard$CASE WHEN everywhere THEN r.agent_identity = theme OR NOT <schema>.hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.<place> = ANY (narrow), true)
                     AND coalesce(r.<ts> >= since, true) AND coalesce(r.<ts> < until, true)$guard$;
    turns      text := replace(match, '<guard>', guard);
    memories   text := turns;
    made       text;
    own        regprocedure;
    -- What differs between turns and memories: (placeholder, text).
    word       text[];
BEGIN
    FOREACH word SLICE 1 IN ARRAY ARRAY[['<function>', 'hermes_match_turns'], ['<table>', 'conversations'], ['<ts>', 'ts'],
                                        ['<place>', 'session_id'], ['<role>', 'r.role']] LOOP
        turns := replace(turns, word[1], word[2]);
    END LOOP;
    FOREACH word SLICE 1 IN ARRAY ARRAY[['<function>', 'hermes_match_memories'], ['<table>', 'memory_entries'],
                                        ['<ts>', 'updated_at'], ['<place>', 'target'], ['<role>', 'NULL']] LOOP
        memories := replace(memories, word[1], word[2]);
    END LOOP;
    FOREACH made IN ARRAY ARRAY[statistics, candidates, turns, memories] LOOP
        EXECUTE replace(replace(made, '<schema>', schema), '<schema name>', quote_literal(current_schema()));
    END LOOP;
    -- For the roles that run agents (see grants.sql), not for everybody who can connect.
    FOR own IN SELECT oid FROM pg_proc WHERE prosecdef AND starts_with(proname, 'hermes_')
               AND pronamespace = schema::regnamespace LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', own);
    END LOOP;
END
$create$;
