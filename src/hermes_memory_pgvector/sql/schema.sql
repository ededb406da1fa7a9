-- The schema after all migrations, with one model's vector tables. Written by docs/generate.py.

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

CREATE FUNCTION public.hermes_code_bounds(dim integer) RETURNS double precision[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT CASE WHEN dim <= 384 THEN ARRAY[-0.9, -0.3, 0.3, 0.9]
                WHEN dim <= 2048 THEN ARRAY[-0.4, 0.4]
                ELSE ARRAY[0.0] END::double precision[]
    $$;

CREATE FUNCTION public.hermes_digest(content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to(content, 'UTF8')) $$;

CREATE FUNCTION public.hermes_fill_lexemes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'public', 'pg_temp'
    AS $$ BEGIN NEW.lexemes := hermes_plain_lexemes(NEW.agent_identity, NEW.content); RETURN NEW; END $$;

CREATE FUNCTION public.hermes_is_private(theme text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT ascii(theme) IN (ascii('_'), ascii('d'), ascii('g'))
       AND (theme = '_bench' OR starts_with(theme, 'dm-') OR starts_with(theme, 'group-'))
    $$;

CREATE FUNCTION public.hermes_match_memories(theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, terms text[], queries text[], own_queries text[], weights real[], near_themes text[], near_ids bigint[], wanted integer) RETURNS TABLE(agent_identity text, id bigint, coverage real, is_dated boolean, ts timestamp with time zone, twin bigint, place text, role text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 200 PARALLEL RESTRICTED
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'on'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
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
        inside := CASE WHEN NOT everywhere THEN public.hermes_quote_lexeme('~=' || theme)::tsquery
                       WHEN public.hermes_is_private(theme) THEN '~all'::tsquery || public.hermes_quote_lexeme('~=' || theme)::tsquery
                       ELSE '~all'::tsquery END;
        SELECT greatest(c.reltuples, 1) * CASE WHEN everywhere THEN 1 ELSE (
                   SELECT s.fraction FROM public.lexeme_statistics AS s
                   WHERE s.source = 'memory_entries' AND s.lexeme = '~=' || theme) END,
               known.fractions, known.asked
        INTO total, fractions, asked
        FROM pg_catalog.pg_class AS c, (
            SELECT array_agg(coalesce((SELECT s.fraction FROM public.lexeme_statistics AS s
                                       WHERE s.source = 'memory_entries' AND s.lexeme = t.lexeme), 0) ORDER BY t.place) AS fractions,
                   array_agg(t.query::tsquery ORDER BY t.place) AS asked
            FROM unnest(terms, queries) WITH ORDINALITY AS t (lexeme, query, place)) AS known
        WHERE c.relname = 'memory_entries' AND c.relnamespace = quote_ident('public')::regnamespace;
        -- Large themes are known by their marker.
        IF total IS NULL THEN
            SELECT count(*) INTO total
            FROM (SELECT FROM public.memory_entries AS r WHERE r.agent_identity = theme LIMIT 2000) AS counted;
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
                  SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM public.memory_entries AS r
                  WHERE r.lexemes @@ (inside && asked[look.term]) AND CASE WHEN everywhere THEN r.agent_identity = theme OR NOT public.hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.target = ANY (narrow), true)
                     AND coalesce(r.updated_at >= since, true) AND coalesce(r.updated_at < until, true)
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
                    SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM public.memory_entries AS r
                    WHERE r.lexemes @@ every AND CASE WHEN everywhere THEN r.agent_identity = theme OR NOT public.hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.target = ANY (narrow), true)
                     AND coalesce(r.updated_at >= since, true) AND coalesce(r.updated_at < until, true) LIMIT wanted) AS f;
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
           r.lexemes @@ '~when'::tsquery, r.updated_at, public.hermes_twin(r.content), r.target, NULL
    FROM chosen AS c
    JOIN public.memory_entries AS r ON r.agent_identity = c.theme AND r.id = c.id
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN a.idf ELSE 0.6 * a.idf END)
                   AS matched
        FROM asked_terms AS a WHERE NOT a.is_absent) AS words;
END
$$;

CREATE FUNCTION public.hermes_match_turns(theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, terms text[], queries text[], own_queries text[], weights real[], near_themes text[], near_ids bigint[], wanted integer) RETURNS TABLE(agent_identity text, id bigint, coverage real, is_dated boolean, ts timestamp with time zone, twin bigint, place text, role text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 200 PARALLEL RESTRICTED
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'on'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
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
        inside := CASE WHEN NOT everywhere THEN public.hermes_quote_lexeme('~=' || theme)::tsquery
                       WHEN public.hermes_is_private(theme) THEN '~all'::tsquery || public.hermes_quote_lexeme('~=' || theme)::tsquery
                       ELSE '~all'::tsquery END;
        SELECT greatest(c.reltuples, 1) * CASE WHEN everywhere THEN 1 ELSE (
                   SELECT s.fraction FROM public.lexeme_statistics AS s
                   WHERE s.source = 'conversations' AND s.lexeme = '~=' || theme) END,
               known.fractions, known.asked
        INTO total, fractions, asked
        FROM pg_catalog.pg_class AS c, (
            SELECT array_agg(coalesce((SELECT s.fraction FROM public.lexeme_statistics AS s
                                       WHERE s.source = 'conversations' AND s.lexeme = t.lexeme), 0) ORDER BY t.place) AS fractions,
                   array_agg(t.query::tsquery ORDER BY t.place) AS asked
            FROM unnest(terms, queries) WITH ORDINALITY AS t (lexeme, query, place)) AS known
        WHERE c.relname = 'conversations' AND c.relnamespace = quote_ident('public')::regnamespace;
        -- Large themes are known by their marker.
        IF total IS NULL THEN
            SELECT count(*) INTO total
            FROM (SELECT FROM public.conversations AS r WHERE r.agent_identity = theme LIMIT 2000) AS counted;
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
                  SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM public.conversations AS r
                  WHERE r.lexemes @@ (inside && asked[look.term]) AND CASE WHEN everywhere THEN r.agent_identity = theme OR NOT public.hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.session_id = ANY (narrow), true)
                     AND coalesce(r.ts >= since, true) AND coalesce(r.ts < until, true)
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
                    SELECT CASE WHEN everywhere THEN r.agent_identity END AS theme, r.id FROM public.conversations AS r
                    WHERE r.lexemes @@ every AND CASE WHEN everywhere THEN r.agent_identity = theme OR NOT public.hermes_is_private(r.agent_identity)
                              ELSE r.agent_identity || '' = theme END
                     AND coalesce(r.session_id = ANY (narrow), true)
                     AND coalesce(r.ts >= since, true) AND coalesce(r.ts < until, true) LIMIT wanted) AS f;
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
           r.lexemes @@ '~when'::tsquery, r.ts, public.hermes_twin(r.content), r.session_id, r.role
    FROM chosen AS c
    JOIN public.conversations AS r ON r.agent_identity = c.theme AND r.id = c.id
    CROSS JOIN LATERAL (
        SELECT sum(CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN a.idf ELSE 0.6 * a.idf END)
                   AS matched
        FROM asked_terms AS a WHERE NOT a.is_absent) AS words;
END
$$;

CREATE FUNCTION public.hermes_move_lexemes() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'public', 'public', 'pg_temp'
    AS $$
    BEGIN
        NEW.lexemes := ts_delete(NEW.lexemes, ARRAY['~=' || OLD.agent_identity, '~all']) || hermes_theme_lexemes(NEW.agent_identity);
        RETURN NEW;
    END $$;

CREATE TABLE public.memory_vectors_1 (
    agent_identity text NOT NULL,
    id bigint NOT NULL,
    chunk smallint DEFAULT 0 NOT NULL,
    ts timestamp with time zone NOT NULL,
    target text NOT NULL,
    embedding public.halfvec(768) NOT NULL,
    code bit(1536) GENERATED ALWAYS AS ((((public.binary_quantize((embedding OPERATOR(public.-) '[-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814]'::public.halfvec)))::bit varying || (public.binary_quantize((embedding OPERATOR(public.-) '[0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814]'::public.halfvec)))::bit varying))::bit(1536)) STORED NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='500');
ALTER TABLE ONLY public.memory_vectors_1 ALTER COLUMN embedding SET STORAGE PLAIN;

CREATE FUNCTION public.hermes_nearest_memories(model public.memory_vectors_1, theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, meaning public.halfvec, candidates integer, min_similarity real, wanted integer, OUT near_themes text[], OUT near_ids bigint[], OUT similarities real[], OUT near_copies integer[]) RETURNS record
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    SET search_path TO 'public', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $_$
#variable_conflict use_column
DECLARE
    asked         halfvec := l2_normalize(meaning);
    asked_code    bit varying := binary_quantize(asked - array_fill(-0.014433756729740645::double precision, ARRAY[768])::halfvec) || binary_quantize(asked - array_fill(0.014433756729740645::double precision, ARRAY[768])::halfvec);
    chosen_themes text[];
    chosen_ids    bigint[];
    size          integer;
    decisive      double precision;
    sample        double precision[];
    breadth       integer;
    upto          integer := 100;
    compared      integer := 0;
    keys          bigint[];
    luck          double precision;
    typical       double precision;
    at_distance   double precision;
    slope         double precision;
    spread        double precision;
    enough        double precision;
    found_ids          bigint[];
    found_twins        bigint[];
    found_similarities real[];
    found_distances    real[];
    has_index          boolean := false;
BEGIN
    IF everywhere THEN
        breadth := CASE WHEN candidates = 2147483647 THEN candidates ELSE least(candidates, 600) END;
        IF candidates < 2147483647 AND EXISTS (
            SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
            WHERE i.indrelid = '"memory_vectors_1"'::regclass AND m.amname = 'hnsw' AND i.indisvalid
              AND pg_get_expr(i.indpred, i.indrelid) LIKE '%hermes_is_private%') THEN
            breadth := least(1000, candidates);
            PERFORM set_config('hnsw.ef_search', breadth::text, true),
                    set_config('hnsw.iterative_scan', 'relaxed_order', true);
            EXECUTE $everywhere$
                SELECT array_agg(c.agent_identity), array_agg(c.id) FROM (
                    (SELECT v.agent_identity, v.id FROM "memory_vectors_1" AS v
                     WHERE NOT hermes_is_private(v.agent_identity) AND ($4 IS NULL OR v.ts >= $4) AND ($5 IS NULL OR v.ts < $5) AND ($6 IS NULL OR v.target = ANY ($6))
                     ORDER BY v.code <~> $1 LIMIT $2)
                    UNION
                    (SELECT v.agent_identity, v.id FROM "memory_vectors_1" AS v
                     WHERE v.agent_identity = $3 AND hermes_is_private($3) AND ($4 IS NULL OR v.ts >= $4) AND ($5 IS NULL OR v.ts < $5) AND ($6 IS NULL OR v.target = ANY ($6))
                     ORDER BY hamming_distance(v.code, $1) LIMIT $2)) AS c $everywhere$
            INTO chosen_themes, chosen_ids USING asked_code, breadth, theme, since, until, narrow;
        ELSE
            size := (SELECT least(2147483647, c.reltuples) FROM pg_catalog.pg_class AS c WHERE c.oid = '"memory_vectors_1"'::regclass);
            IF size >= 5000 AND breadth < size / 10 AND narrow IS NULL AND since IS NULL AND until IS NULL THEN
                -- As in a large theme: a sample tells the distance that decides. It is large enough that it rarely tells one
                -- within which too few rows lie, for then all are read a second time.
                SELECT array_agg(s.distance ORDER BY s.distance) INTO sample FROM (
                    SELECT hamming_distance(v.code, asked_code) AS distance
                    FROM "memory_vectors_1" AS v TABLESAMPLE SYSTEM (least(100, greatest(200000.0 / size, 1000.0 / breadth))) REPEATABLE (1)) AS s;
                decisive := sample[1 + cardinality(sample) * 2.5 * breadth / size];
            END IF;
            LOOP
                SELECT array_agg(c.agent_identity), array_agg(c.id) INTO chosen_themes, chosen_ids FROM (
                    SELECT v.agent_identity, v.id FROM "memory_vectors_1" AS v
                    WHERE coalesce(hamming_distance(v.code, asked_code) <= decisive, true)
                      AND (NOT hermes_is_private(v.agent_identity) OR v.agent_identity = theme)
                      AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true) AND coalesce(v.target = ANY (narrow), true)
                    ORDER BY hamming_distance(v.code, asked_code) LIMIT breadth) AS c;
                EXIT WHEN decisive IS NULL OR cardinality(chosen_ids) = breadth;
                decisive := NULL;
            END LOOP;
        END IF;
        SELECT array_agg(n.theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
        INTO near_themes, near_ids, similarities, near_copies
        FROM (SELECT c.theme, max(v.id) AS id, max(v.similarity)::real AS similarity, greatest(1, sum(v.copy))::integer AS copies
              FROM unnest(chosen_themes, chosen_ids) AS c (theme, id)
              CROSS JOIN LATERAL (
                  SELECT v.id, v.id AS twin, (v.chunk = 0)::integer AS copy,
                         1 - cosine_distance(v.embedding, asked) AS similarity
                  FROM "memory_vectors_1" AS v WHERE v.agent_identity = c.theme AND v.id = c.id OFFSET 0) AS v
              GROUP BY c.theme, v.twin ORDER BY max(v.similarity) DESC LIMIT 60) AS n;
    ELSIF candidates = 2147483647 THEN
        SELECT array_agg(n.id), array_agg(n.similarity), array_agg(n.copies) INTO near_ids, similarities, near_copies
        FROM (SELECT max(v.id) AS id, (1 - min(cosine_distance(v.embedding, asked)))::real AS similarity,
                     greatest(1, count(*) FILTER (WHERE v.chunk = 0))::integer AS copies
              FROM "memory_vectors_1" AS v
              WHERE v.agent_identity = theme AND coalesce(v.target = ANY (narrow), true)
                AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
              GROUP BY v.id ORDER BY 2 DESC LIMIT 60) AS n;
    ELSE
        size := hermes_theme_size('"memory_vectors_1"'::regclass, 'memory_entries', theme);
        -- Keeping all that may be needed costs little where few rows are sorted, and less than a second look where many are.
        breadth := CASE WHEN has_index OR size >= 20000 OR coalesce(size, 0) < 5000 THEN candidates ELSE least(candidates, 400) END;
        -- Among more rows, luckier ones are to be expected.
        luck := 4 + 0.5 * greatest(0, log(greatest(1, coalesce(size, 1)) / 20000.0::double precision));
        LOOP
            IF compared = coalesce(cardinality(keys), 0) THEN
                -- Distance and id in one number: what is sorted is a number, not a row.
                IF has_index THEN
                    -- With the theme as a literal, its own index is proven to fit; planned each time, for that theme.
                    PERFORM set_config('hnsw.ef_search', least(1000, candidates)::text, true),
                            set_config('hnsw.iterative_scan', 'relaxed_order', true);
                    EXECUTE format($own$
                        SELECT ARRAY(SELECT (hamming_distance(n.code, $1)::bigint << 44) + n.id AS key
                                     FROM (SELECT v.id, v.code FROM "memory_vectors_1" AS v WHERE v.agent_identity = %L
                                           ORDER BY v.code <~> $1 LIMIT $2) AS n ORDER BY key) $own$, theme)
                    INTO keys USING asked_code, breadth;
                ELSIF narrow IS NULL AND since IS NULL AND until IS NULL THEN
                    IF compared = 0 AND size >= 5000 THEN
                        -- What some of the rows say of the distance that decides spares most of the others the sorting.
                        decisive := (SELECT s.distance FROM (
                            SELECT hamming_distance(v.code, asked_code) AS distance FROM "memory_vectors_1" AS v
                            WHERE v.agent_identity = theme LIMIT size / 20) AS s ORDER BY 1 OFFSET breadth / 10 LIMIT 1);
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM "memory_vectors_1" AS v
                                      WHERE v.agent_identity = theme AND hamming_distance(v.code, asked_code) <= decisive
                                      ORDER BY key LIMIT breadth);
                    END IF;
                    IF compared > 0 OR coalesce(cardinality(keys), 0) < breadth THEN
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM "memory_vectors_1" AS v WHERE v.agent_identity = theme ORDER BY key LIMIT breadth);
                    END IF;
                ELSE
                    keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                  FROM "memory_vectors_1" AS v
                                  WHERE v.agent_identity = theme AND coalesce(v.target = ANY (narrow), true)
                                    AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
                                  ORDER BY key LIMIT breadth);
                END IF;
                EXIT WHEN compared = cardinality(keys);
            END IF;
            -- So few that all are compared at once; which is exact, whatever their codes say.
            upto := CASE WHEN compared = 0 AND cardinality(keys) < least(breadth, 400) THEN 400 ELSE upto END;
            upto := least(cardinality(keys), upto);
            SELECT found_ids || array_agg(v.id), found_twins || array_agg(v.id), found_similarities || array_agg(v.similarity),
                   found_distances || array_agg(v.distance)
            INTO found_ids, found_twins, found_similarities, found_distances
            FROM (SELECT v.*, (1 - cosine_distance(v.embedding, asked))::real AS similarity,
                         hamming_distance(v.code, asked_code)::real AS distance
                  FROM "memory_vectors_1" AS v
                  WHERE v.agent_identity = theme
                    AND v.id = ANY (ARRAY(SELECT k & 17592186044415 FROM unnest(keys[compared + 1 : upto]) AS k)) OFFSET 0) AS v;
            compared := upto;
            EXIT WHEN compared = cardinality(keys) AND (compared < breadth OR breadth = candidates);
            breadth := CASE WHEN compared = cardinality(keys) THEN candidates ELSE breadth END;
            -- How near a row may still be, by its distance and the rows compared so far: where even a most unlikely one
            -- would not come among those asked for, or is too far to be told, nobody further away does.
            SELECT avg(f.similarity), avg(f.distance), least(0, coalesce(regr_slope(f.similarity, f.distance), 0)),
                   luck * sqrt(greatest(0, regr_syy(f.similarity, f.distance) - coalesce(
                       regr_sxy(f.similarity, f.distance) ^ 2 / nullif(regr_sxx(f.similarity, f.distance), 0), 0)) / count(*))
            INTO typical, at_distance, slope, spread FROM unnest(found_similarities, found_distances) AS f (similarity, distance);
            enough := greatest(min_similarity, (
                SELECT DISTINCT f.similarity FROM unnest(found_similarities) AS f (similarity)
                ORDER BY 1 DESC OFFSET least(greatest(wanted, 10), 20) - 1 LIMIT 1));
            EXIT WHEN typical + slope * ((keys[compared] >> 44) - at_distance) + spread < enough;
            -- What lies before that distance is compared next, and a little more: the farther, the flatter the slope.
            upto := CASE WHEN slope < 0 AND enough IS NOT NULL
                         THEN width_bucket(least(100000, at_distance + (typical + spread - enough) / -slope + 1)::bigint << 44, keys)
                         ELSE 2 * compared END;
            upto := greatest(compared + 100, least(upto + (upto - compared) / 3, 6 * compared));
        END LOOP;
        SELECT array_agg(n.id), array_agg(n.similarity), array_agg(n.copies) INTO near_ids, similarities, near_copies
        FROM (SELECT max(f.id) AS id, max(f.similarity) AS similarity, count(DISTINCT f.id)::integer AS copies
              FROM unnest(found_ids, found_twins, found_similarities) AS f (id, twin, similarity)
              GROUP BY f.twin ORDER BY 2 DESC LIMIT 60) AS n;
    END IF;
END
$_$;

CREATE TABLE public.turn_vectors_1 (
    agent_identity text NOT NULL,
    id bigint NOT NULL,
    chunk smallint DEFAULT 0 NOT NULL,
    ts timestamp with time zone NOT NULL,
    twin bigint NOT NULL,
    embedding public.halfvec(768) NOT NULL,
    code bit(1536) GENERATED ALWAYS AS ((((public.binary_quantize((embedding OPERATOR(public.-) '[-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814,-0.014434814]'::public.halfvec)))::bit varying || (public.binary_quantize((embedding OPERATOR(public.-) '[0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814,0.014434814]'::public.halfvec)))::bit varying))::bit(1536)) STORED NOT NULL
)
WITH (autovacuum_vacuum_insert_scale_factor='0.02', autovacuum_vacuum_insert_threshold='500');
ALTER TABLE ONLY public.turn_vectors_1 ALTER COLUMN embedding SET STORAGE PLAIN;

CREATE FUNCTION public.hermes_nearest_turns(model public.turn_vectors_1, theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, meaning public.halfvec, candidates integer, min_similarity real, wanted integer, OUT near_themes text[], OUT near_ids bigint[], OUT similarities real[], OUT near_copies integer[]) RETURNS record
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    SET search_path TO 'public', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $_$
#variable_conflict use_column
DECLARE
    asked         halfvec := l2_normalize(meaning);
    asked_code    bit varying := binary_quantize(asked - array_fill(-0.014433756729740645::double precision, ARRAY[768])::halfvec) || binary_quantize(asked - array_fill(0.014433756729740645::double precision, ARRAY[768])::halfvec);
    chosen_themes text[];
    chosen_ids    bigint[];
    size          integer;
    decisive      double precision;
    sample        double precision[];
    breadth       integer;
    upto          integer := 100;
    compared      integer := 0;
    keys          bigint[];
    luck          double precision;
    typical       double precision;
    at_distance   double precision;
    slope         double precision;
    spread        double precision;
    enough        double precision;
    found_ids          bigint[];
    found_twins        bigint[];
    found_similarities real[];
    found_distances    real[];
    has_index          boolean := NOT everywhere AND narrow IS NULL AND since IS NULL AND until IS NULL
             AND candidates < 2147483647
             AND EXISTS (SELECT FROM theme_indexes AS i WHERE i.agent_identity = theme AND i.model_id = 1);
BEGIN
    IF everywhere THEN
        breadth := CASE WHEN candidates = 2147483647 THEN candidates ELSE least(candidates, 600) END;
        IF candidates < 2147483647 AND EXISTS (
            SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
            WHERE i.indrelid = '"turn_vectors_1"'::regclass AND m.amname = 'hnsw' AND i.indisvalid
              AND pg_get_expr(i.indpred, i.indrelid) LIKE '%hermes_is_private%') THEN
            breadth := least(1000, candidates);
            PERFORM set_config('hnsw.ef_search', breadth::text, true),
                    set_config('hnsw.iterative_scan', 'relaxed_order', true);
            EXECUTE $everywhere$
                SELECT array_agg(c.agent_identity), array_agg(c.id) FROM (
                    (SELECT v.agent_identity, v.id FROM "turn_vectors_1" AS v
                     WHERE NOT hermes_is_private(v.agent_identity) AND ($4 IS NULL OR v.ts >= $4) AND ($5 IS NULL OR v.ts < $5) AND $6 IS NULL
                     ORDER BY v.code <~> $1 LIMIT $2)
                    UNION
                    (SELECT v.agent_identity, v.id FROM "turn_vectors_1" AS v
                     WHERE v.agent_identity = $3 AND hermes_is_private($3) AND ($4 IS NULL OR v.ts >= $4) AND ($5 IS NULL OR v.ts < $5) AND $6 IS NULL
                     ORDER BY hamming_distance(v.code, $1) LIMIT $2)) AS c $everywhere$
            INTO chosen_themes, chosen_ids USING asked_code, breadth, theme, since, until, narrow;
        ELSE
            size := (SELECT least(2147483647, c.reltuples) FROM pg_catalog.pg_class AS c WHERE c.oid = '"turn_vectors_1"'::regclass);
            IF size >= 5000 AND breadth < size / 10 AND narrow IS NULL AND since IS NULL AND until IS NULL THEN
                -- As in a large theme: a sample tells the distance that decides. It is large enough that it rarely tells one
                -- within which too few rows lie, for then all are read a second time.
                SELECT array_agg(s.distance ORDER BY s.distance) INTO sample FROM (
                    SELECT hamming_distance(v.code, asked_code) AS distance
                    FROM "turn_vectors_1" AS v TABLESAMPLE SYSTEM (least(100, greatest(200000.0 / size, 1000.0 / breadth))) REPEATABLE (1)) AS s;
                decisive := sample[1 + cardinality(sample) * 2.5 * breadth / size];
            END IF;
            LOOP
                SELECT array_agg(c.agent_identity), array_agg(c.id) INTO chosen_themes, chosen_ids FROM (
                    SELECT v.agent_identity, v.id FROM "turn_vectors_1" AS v
                    WHERE coalesce(hamming_distance(v.code, asked_code) <= decisive, true)
                      AND (NOT hermes_is_private(v.agent_identity) OR v.agent_identity = theme)
                      AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true) AND narrow IS NULL
                    ORDER BY hamming_distance(v.code, asked_code) LIMIT breadth) AS c;
                EXIT WHEN decisive IS NULL OR cardinality(chosen_ids) = breadth;
                decisive := NULL;
            END LOOP;
        END IF;
        SELECT array_agg(n.theme), array_agg(n.id), array_agg(n.similarity), array_agg(n.copies)
        INTO near_themes, near_ids, similarities, near_copies
        FROM (SELECT c.theme, max(v.id) AS id, max(v.similarity)::real AS similarity, greatest(1, sum(v.copy))::integer AS copies
              FROM unnest(chosen_themes, chosen_ids) AS c (theme, id)
              CROSS JOIN LATERAL (
                  SELECT v.id, v.twin AS twin, (v.chunk = 0)::integer AS copy,
                         1 - cosine_distance(v.embedding, asked) AS similarity
                  FROM "turn_vectors_1" AS v WHERE v.agent_identity = c.theme AND v.id = c.id OFFSET 0) AS v
              GROUP BY c.theme, v.twin ORDER BY max(v.similarity) DESC LIMIT 60) AS n;
    ELSIF candidates = 2147483647 THEN
        SELECT array_agg(n.id), array_agg(n.similarity), array_agg(n.copies) INTO near_ids, similarities, near_copies
        FROM (SELECT max(v.id) AS id, (1 - min(cosine_distance(v.embedding, asked)))::real AS similarity,
                     greatest(1, count(*) FILTER (WHERE v.chunk = 0))::integer AS copies
              FROM "turn_vectors_1" AS v
              WHERE v.agent_identity = theme AND (narrow IS NULL OR v.id = ANY (ARRAY(SELECT c.id FROM conversations AS c
             WHERE c.agent_identity = theme AND c.session_id = ANY (narrow))))
                AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
              GROUP BY v.twin ORDER BY 2 DESC LIMIT 60) AS n;
    ELSE
        size := hermes_theme_size('"turn_vectors_1"'::regclass, 'conversations', theme);
        -- Keeping all that may be needed costs little where few rows are sorted, and less than a second look where many are.
        breadth := CASE WHEN has_index OR size >= 20000 OR coalesce(size, 0) < 5000 THEN candidates ELSE least(candidates, 400) END;
        -- Among more rows, luckier ones are to be expected.
        luck := 4 + 0.5 * greatest(0, log(greatest(1, coalesce(size, 1)) / 20000.0::double precision));
        LOOP
            IF compared = coalesce(cardinality(keys), 0) THEN
                -- Distance and id in one number: what is sorted is a number, not a row.
                IF has_index THEN
                    -- With the theme as a literal, its own index is proven to fit; planned each time, for that theme.
                    PERFORM set_config('hnsw.ef_search', least(1000, candidates)::text, true),
                            set_config('hnsw.iterative_scan', 'relaxed_order', true);
                    EXECUTE format($own$
                        SELECT ARRAY(SELECT (hamming_distance(n.code, $1)::bigint << 44) + n.id AS key
                                     FROM (SELECT v.id, v.code FROM "turn_vectors_1" AS v WHERE v.agent_identity = %L
                                           ORDER BY v.code <~> $1 LIMIT $2) AS n ORDER BY key) $own$, theme)
                    INTO keys USING asked_code, breadth;
                ELSIF narrow IS NULL AND since IS NULL AND until IS NULL THEN
                    IF compared = 0 AND size >= 5000 THEN
                        -- What some of the rows say of the distance that decides spares most of the others the sorting.
                        decisive := (SELECT s.distance FROM (
                            SELECT hamming_distance(v.code, asked_code) AS distance FROM "turn_vectors_1" AS v
                            WHERE v.agent_identity = theme LIMIT size / 20) AS s ORDER BY 1 OFFSET breadth / 10 LIMIT 1);
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM "turn_vectors_1" AS v
                                      WHERE v.agent_identity = theme AND hamming_distance(v.code, asked_code) <= decisive
                                      ORDER BY key LIMIT breadth);
                    END IF;
                    IF compared > 0 OR coalesce(cardinality(keys), 0) < breadth THEN
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM "turn_vectors_1" AS v WHERE v.agent_identity = theme ORDER BY key LIMIT breadth);
                    END IF;
                ELSE
                    keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                  FROM "turn_vectors_1" AS v
                                  WHERE v.agent_identity = theme AND (narrow IS NULL OR v.id = ANY (ARRAY(SELECT c.id FROM conversations AS c
             WHERE c.agent_identity = theme AND c.session_id = ANY (narrow))))
                                    AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
                                  ORDER BY key LIMIT breadth);
                END IF;
                EXIT WHEN compared = cardinality(keys);
            END IF;
            -- So few that all are compared at once; which is exact, whatever their codes say.
            upto := CASE WHEN compared = 0 AND cardinality(keys) < least(breadth, 400) THEN 400 ELSE upto END;
            upto := least(cardinality(keys), upto);
            SELECT found_ids || array_agg(v.id), found_twins || array_agg(v.twin), found_similarities || array_agg(v.similarity),
                   found_distances || array_agg(v.distance)
            INTO found_ids, found_twins, found_similarities, found_distances
            FROM (SELECT v.*, (1 - cosine_distance(v.embedding, asked))::real AS similarity,
                         hamming_distance(v.code, asked_code)::real AS distance
                  FROM "turn_vectors_1" AS v
                  WHERE v.agent_identity = theme
                    AND v.id = ANY (ARRAY(SELECT k & 17592186044415 FROM unnest(keys[compared + 1 : upto]) AS k)) OFFSET 0) AS v;
            compared := upto;
            EXIT WHEN compared = cardinality(keys) AND (compared < breadth OR breadth = candidates);
            breadth := CASE WHEN compared = cardinality(keys) THEN candidates ELSE breadth END;
            -- How near a row may still be, by its distance and the rows compared so far: where even a most unlikely one
            -- would not come among those asked for, or is too far to be told, nobody further away does.
            SELECT avg(f.similarity), avg(f.distance), least(0, coalesce(regr_slope(f.similarity, f.distance), 0)),
                   luck * sqrt(greatest(0, regr_syy(f.similarity, f.distance) - coalesce(
                       regr_sxy(f.similarity, f.distance) ^ 2 / nullif(regr_sxx(f.similarity, f.distance), 0), 0)) / count(*))
            INTO typical, at_distance, slope, spread FROM unnest(found_similarities, found_distances) AS f (similarity, distance);
            enough := greatest(min_similarity, (
                SELECT DISTINCT f.similarity FROM unnest(found_similarities) AS f (similarity)
                ORDER BY 1 DESC OFFSET least(greatest(wanted, 10), 20) - 1 LIMIT 1));
            EXIT WHEN typical + slope * ((keys[compared] >> 44) - at_distance) + spread < enough;
            -- What lies before that distance is compared next, and a little more: the farther, the flatter the slope.
            upto := CASE WHEN slope < 0 AND enough IS NOT NULL
                         THEN width_bucket(least(100000, at_distance + (typical + spread - enough) / -slope + 1)::bigint << 44, keys)
                         ELSE 2 * compared END;
            upto := greatest(compared + 100, least(upto + (upto - compared) / 3, 6 * compared));
        END LOOP;
        SELECT array_agg(n.id), array_agg(n.similarity), array_agg(n.copies) INTO near_ids, similarities, near_copies
        FROM (SELECT max(f.id) AS id, max(f.similarity) AS similarity, count(DISTINCT f.id)::integer AS copies
              FROM unnest(found_ids, found_twins, found_similarities) AS f (id, twin, similarity)
              GROUP BY f.twin ORDER BY 2 DESC LIMIT 60) AS n;
    END IF;
END
$_$;

CREATE FUNCTION public.hermes_plain_lexemes(theme text, content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path TO 'public', 'public', 'pg_temp'
    AS $$
    SELECT hermes_theme_lexemes(theme)
        || setweight(to_tsvector('pg_catalog.english', folded), 'A')
        || setweight(to_tsvector('pg_catalog.simple', folded), 'A')
        || CASE WHEN folded ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\uffdc]' THEN hermes_unspaced_lexemes(folded) ELSE ''::tsvector END
    FROM (SELECT lower(normalize(regexp_replace(normalize(left(content, 100000), NFKD), '[\u0300-\u036f\u0640\u064b-\u0652]', '', 'g'), NFC)) AS folded) AS prepared
    $$;

CREATE FUNCTION public.hermes_quote_lexeme(lexeme text) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''' $$;

CREATE FUNCTION public.hermes_raise_candidates(model_id integer, needed integer) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    UPDATE public.embedding_models SET candidates = least(25600, greatest(candidates, needed)) WHERE id = model_id
    $$;

CREATE FUNCTION public.hermes_rank(similarity real, coverage real, answers_when boolean, is_in_period boolean, is_by_speaker boolean, age interval, half_life_days real) RETURNS real
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT ((0.7 * coalesce(similarity, 0) + coverage
             + CASE WHEN answers_when THEN 0.10::double precision ELSE 0 END
             + CASE WHEN is_in_period THEN 0.20::double precision ELSE 0 END
             + CASE WHEN is_by_speaker THEN 0.15::double precision ELSE 0 END)
            * CASE WHEN half_life_days > 0 AND age > interval '0'
                   THEN 0.5 ^ (extract(epoch FROM age)::double precision / 86400 / half_life_days) ELSE 1 END)::real
    $$;

CREATE FUNCTION public.hermes_refresh_statistics() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    BEGIN
        -- Every process of a fleet may call this: one at a time is enough.
        IF NOT pg_try_advisory_xact_lock(hashtextextended('hermes_refresh_statistics', 0)) THEN
            RETURN;
        END IF;
        DELETE FROM public.lexeme_statistics;
        INSERT INTO public.lexeme_statistics
        SELECT s.tablename, known.lexeme, max(known.fraction)
        FROM pg_catalog.pg_stats AS s,
             unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (lexeme, fraction)
        WHERE s.schemaname = 'public' AND s.attname = 'lexemes'
          AND s.tablename IN ('memory_entries', 'conversations') AND known.lexeme IS NOT NULL
        GROUP BY 1, 2;
    END $$;

CREATE FUNCTION public.hermes_search_memories(model public.memory_vectors_1, theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, terms text[], queries text[], own_queries text[], weights real[], meaning public.halfvec, candidates integer, min_similarity real, min_coverage real, asks_when boolean, speaker text, period_start timestamp with time zone, period_end timestamp with time zone, half_life_days real, now timestamp with time zone, wanted integer) RETURNS TABLE(agent_identity text, id bigint, ts timestamp with time zone, content text, similarity real, rank real, count integer, place text, role text)
    LANGUAGE plpgsql STABLE ROWS 10 PARALLEL RESTRICTED
    SET search_path TO 'public', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
#variable_conflict use_column
DECLARE
    asked        halfvec := l2_normalize(meaning);
    near_themes  text[];
    near_ids     bigint[];
    similarities real[];
    near_copies  integer[];
BEGIN
    SELECT n.near_themes, n.near_ids, n.similarities, n.near_copies
    INTO near_themes, near_ids, similarities, near_copies
    FROM hermes_nearest_memories(model, theme, everywhere, narrow, since, until, meaning, candidates, min_similarity, wanted) AS n;

    RETURN QUERY
    WITH scored AS MATERIALIZED (
        SELECT m.*, coalesce(n.copies, 1) AS copies,
               coalesce(n.similarity, (SELECT (1 - min(cosine_distance(v.embedding, asked)))::real FROM "memory_vectors_1" AS v
                                       WHERE v.agent_identity = m.agent_identity AND v.id = m.id)) AS similarity
        FROM hermes_match_memories(theme, everywhere, narrow, since, until, terms, queries, own_queries, weights,
                                 near_themes, near_ids, 100) AS m
        LEFT JOIN unnest(near_themes, near_ids, similarities, near_copies) AS n (seen_in, id, similarity, copies)
               ON n.id = m.id AND coalesce(n.seen_in = m.agent_identity, true)
    ), ranked AS (
        SELECT s.*, hermes_rank(s.similarity, s.coverage, asks_when AND s.is_dated,
                                s.ts >= period_start AND s.ts < period_end, s.role = speaker, now - s.ts,
                                half_life_days) AS rank
        FROM scored AS s WHERE s.similarity >= min_similarity OR s.coverage >= min_coverage
    ), folded AS (
        SELECT r.*, row_number() OVER same_text AS copy,
               greatest(max(r.copies) OVER same_text, count(*) OVER same_text)::integer AS all_copies
        FROM ranked AS r
        WINDOW same_text AS (PARTITION BY r.agent_identity, r.twin ORDER BY r.rank DESC, r.ts DESC, r.id DESC
                             ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ), best AS (
        SELECT f.*, (f.rank - 0::double precision * least(4, row_number() OVER (
                   PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1))::real AS final_rank
        FROM folded AS f WHERE f.copy = 1
        ORDER BY final_rank DESC, f.ts DESC, f.id DESC LIMIT wanted
    )
    SELECT b.agent_identity, b.id, b.ts, t.content, b.similarity, b.final_rank, b.all_copies, b.place, b.role
    FROM best AS b JOIN memory_entries AS t ON t.agent_identity = b.agent_identity AND t.id = b.id
    ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
END
$$;

CREATE FUNCTION public.hermes_search_turns(model public.turn_vectors_1, theme text, everywhere boolean, narrow text[], since timestamp with time zone, until timestamp with time zone, terms text[], queries text[], own_queries text[], weights real[], meaning public.halfvec, candidates integer, min_similarity real, min_coverage real, asks_when boolean, speaker text, period_start timestamp with time zone, period_end timestamp with time zone, half_life_days real, now timestamp with time zone, wanted integer) RETURNS TABLE(agent_identity text, id bigint, ts timestamp with time zone, content text, similarity real, rank real, count integer, place text, role text)
    LANGUAGE plpgsql STABLE ROWS 10 PARALLEL RESTRICTED
    SET search_path TO 'public', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    AS $$
#variable_conflict use_column
DECLARE
    asked        halfvec := l2_normalize(meaning);
    near_themes  text[];
    near_ids     bigint[];
    similarities real[];
    near_copies  integer[];
BEGIN
    SELECT n.near_themes, n.near_ids, n.similarities, n.near_copies
    INTO near_themes, near_ids, similarities, near_copies
    FROM hermes_nearest_turns(model, theme, everywhere, narrow, since, until, meaning, candidates, min_similarity, wanted) AS n;

    RETURN QUERY
    WITH scored AS MATERIALIZED (
        SELECT m.*, coalesce(n.copies, 1) AS copies,
               coalesce(n.similarity, (SELECT (1 - min(cosine_distance(v.embedding, asked)))::real FROM "turn_vectors_1" AS v
                                       WHERE v.agent_identity = m.agent_identity AND v.id = m.id)) AS similarity
        FROM hermes_match_turns(theme, everywhere, narrow, since, until, terms, queries, own_queries, weights,
                                 near_themes, near_ids, 100) AS m
        LEFT JOIN unnest(near_themes, near_ids, similarities, near_copies) AS n (seen_in, id, similarity, copies)
               ON n.id = m.id AND coalesce(n.seen_in = m.agent_identity, true)
    ), ranked AS (
        SELECT s.*, hermes_rank(s.similarity, s.coverage, asks_when AND s.is_dated,
                                s.ts >= period_start AND s.ts < period_end, s.role = speaker, now - s.ts,
                                half_life_days) AS rank
        FROM scored AS s WHERE s.similarity >= min_similarity OR s.coverage >= min_coverage
    ), folded AS (
        SELECT r.*, row_number() OVER same_text AS copy,
               greatest(max(r.copies) OVER same_text, count(*) OVER same_text)::integer AS all_copies
        FROM ranked AS r
        WINDOW same_text AS (PARTITION BY r.agent_identity, r.twin ORDER BY r.rank DESC, r.ts DESC, r.id DESC
                             ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    ), best AS (
        SELECT f.*, (f.rank - 0.005::double precision * least(4, row_number() OVER (
                   PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1))::real AS final_rank
        FROM folded AS f WHERE f.copy = 1
        ORDER BY final_rank DESC, f.ts DESC, f.id DESC LIMIT wanted
    )
    SELECT b.agent_identity, b.id, b.ts, t.content, b.similarity, b.final_rank, b.all_copies, b.place, b.role
    FROM best AS b JOIN conversations AS t ON t.agent_identity = b.agent_identity AND t.id = b.id
    ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
END
$$;

CREATE FUNCTION public.hermes_theme_lexemes(theme text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT array_to_tsvector(CASE WHEN hermes_is_private(theme) THEN ARRAY['~=' || theme]
                                        ELSE ARRAY['~=' || theme, '~all'] END) $$;

CREATE FUNCTION public.hermes_theme_size(vectors regclass, source text, theme text) RETURNS integer
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET search_path TO 'public', 'public', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
    BEGIN
        RETURN (SELECT least(2147483647, s.fraction * c.reltuples) FROM lexeme_statistics AS s, pg_catalog.pg_class AS c
                WHERE s.source = hermes_theme_size.source AND s.lexeme = '~=' || theme AND c.oid = vectors);
    END $$;

CREATE FUNCTION public.hermes_turn_digest(role text, content text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(role || ':' || content, 'UTF8')), 1, 16) $$;

CREATE FUNCTION public.hermes_twin(content text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.hashtextextended(content, 0) $$;

CREATE FUNCTION public.hermes_unspaced_lexemes(content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT coalesce(string_agg(DISTINCT hermes_quote_lexeme(pair.sign) || ':1A', ' '), '')::tsvector
    FROM regexp_matches(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+', 'g') AS run,
         generate_series(1, length(run[1])) AS place,
         LATERAL (VALUES (substr(run[1], place, 1)), (substr(run[1], place, 2))) AS pair (sign)
    $$;

CREATE TABLE public.conversations (
    agent_identity text DEFAULT 'default'::text NOT NULL,
    id bigint NOT NULL,
    session_id text NOT NULL,
    role text NOT NULL,
    content text NOT NULL,
    ts timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    parent_session_id text,
    digest bytea,
    ordinal integer,
    lexemes tsvector,
    CONSTRAINT conversations_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text])))
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.conversations ALTER COLUMN lexemes SET STATISTICS 400;

CREATE VIEW public.conversations_embedded AS
 SELECT turn.id,
    turn.session_id,
    turn.agent_identity,
    turn.role,
    turn.content,
    turn.ts,
    turn.metadata,
    turn.parent_session_id,
    vector.chunk,
    vector.embedding
   FROM (public.conversations turn
     LEFT JOIN public.turn_vectors_1 vector ON (((vector.agent_identity = turn.agent_identity) AND (vector.id = turn.id))));

CREATE SEQUENCE public.conversations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.conversations_id_seq OWNED BY public.conversations.id;

CREATE TABLE public.dead_letters (
    id bigint NOT NULL,
    writer text NOT NULL,
    seq bigint NOT NULL,
    payload bytea NOT NULL,
    reason text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE SEQUENCE public.dead_letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.dead_letters_id_seq OWNED BY public.dead_letters.id;

CREATE TABLE public.delegations (
    agent_identity text NOT NULL,
    id bigint NOT NULL,
    session_id text NOT NULL,
    child_session_id text NOT NULL,
    task_digest bytea NOT NULL,
    ts timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL
);

CREATE SEQUENCE public.delegations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.delegations_id_seq OWNED BY public.delegations.id;

CREATE TABLE public.embedding_models (
    id integer NOT NULL,
    name text NOT NULL,
    dim integer NOT NULL,
    layout text DEFAULT 'coded'::text NOT NULL,
    min_similarity real DEFAULT 0.30 NOT NULL,
    candidates integer DEFAULT 1600 NOT NULL,
    is_current boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT embedding_models_candidates_check CHECK (((candidates >= 100) AND (candidates <= 25600))),
    CONSTRAINT embedding_models_dim_check CHECK (((dim >= 1) AND (dim <= 4000))),
    CONSTRAINT embedding_models_layout_check CHECK ((layout = 'coded'::text))
);

ALTER TABLE public.embedding_models ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.embedding_models_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.hermes_pgvector_installation (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    is_the_one boolean DEFAULT true NOT NULL,
    CONSTRAINT hermes_pgvector_installation_is_the_one_check CHECK (is_the_one)
);

CREATE TABLE public.hermes_pgvector_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.journal_writers (
    writer text NOT NULL,
    seq bigint NOT NULL,
    home_id text DEFAULT ''::text NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.lexeme_statistics (
    source text NOT NULL,
    lexeme text NOT NULL,
    fraction real NOT NULL,
    CONSTRAINT lexeme_statistics_source_check CHECK ((source = ANY (ARRAY['memory_entries'::text, 'conversations'::text])))
);

CREATE TABLE public.memory_entries (
    agent_identity text DEFAULT 'default'::text NOT NULL,
    id bigint NOT NULL,
    target text NOT NULL,
    content text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    lexemes tsvector,
    CONSTRAINT memory_entries_target_check CHECK ((target = ANY (ARRAY['memory'::text, 'user'::text])))
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.memory_entries ALTER COLUMN lexemes SET STATISTICS 400;

CREATE VIEW public.memory_entries_embedded AS
 SELECT entry.id,
    entry.agent_identity,
    entry.target,
    entry.content,
    entry.created_at,
    entry.updated_at,
    entry.metadata,
    vector.chunk,
    vector.embedding
   FROM (public.memory_entries entry
     LEFT JOIN public.memory_vectors_1 vector ON (((vector.agent_identity = entry.agent_identity) AND (vector.id = entry.id))));

CREATE SEQUENCE public.memory_entries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.memory_entries_id_seq OWNED BY public.memory_entries.id;

CREATE TABLE public.memory_files (
    home_id text NOT NULL,
    target text NOT NULL,
    entries jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT memory_files_target_check CHECK ((target = ANY (ARRAY['memory'::text, 'user'::text])))
);

CREATE TABLE public.memory_operations (
    agent_identity text NOT NULL,
    target text NOT NULL,
    order_us bigint NOT NULL,
    writer text NOT NULL,
    seq bigint NOT NULL,
    part integer NOT NULL,
    action text NOT NULL,
    content text DEFAULT ''::text NOT NULL,
    old_text text DEFAULT ''::text NOT NULL,
    previous text,
    home_id text DEFAULT ''::text NOT NULL,
    origin text DEFAULT 'tool'::text NOT NULL,
    at timestamp with time zone NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT memory_operations_action_check CHECK ((action = ANY (ARRAY['add'::text, 'replace'::text, 'remove'::text]))),
    CONSTRAINT memory_operations_target_check CHECK ((target = ANY (ARRAY['memory'::text, 'user'::text])))
);

CREATE TABLE public.memory_sources (
    agent_identity text NOT NULL,
    entry_id bigint NOT NULL,
    home_id text NOT NULL,
    origin text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT memory_sources_origin_check CHECK ((origin = ANY (ARRAY['tool'::text, 'file'::text])))
);

CREATE TABLE public.pending_vectors (
    agent_identity text NOT NULL,
    kind text NOT NULL,
    id bigint NOT NULL,
    due_at timestamp with time zone DEFAULT now() NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    CONSTRAINT pending_vectors_kind_check CHECK ((kind = ANY (ARRAY['memory'::text, 'turn'::text])))
);

CREATE TABLE public.theme_indexes (
    agent_identity text NOT NULL,
    model_id integer NOT NULL,
    index_name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY public.conversations ALTER COLUMN id SET DEFAULT nextval('public.conversations_id_seq'::regclass);

ALTER TABLE ONLY public.dead_letters ALTER COLUMN id SET DEFAULT nextval('public.dead_letters_id_seq'::regclass);

ALTER TABLE ONLY public.delegations ALTER COLUMN id SET DEFAULT nextval('public.delegations_id_seq'::regclass);

ALTER TABLE ONLY public.memory_entries ALTER COLUMN id SET DEFAULT nextval('public.memory_entries_id_seq'::regclass);

ALTER TABLE ONLY public.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (agent_identity, id);

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_writer_seq_key UNIQUE (writer, seq);

ALTER TABLE ONLY public.delegations
    ADD CONSTRAINT delegations_pkey PRIMARY KEY (agent_identity, id);

ALTER TABLE ONLY public.embedding_models
    ADD CONSTRAINT embedding_models_name_dim_key UNIQUE (name, dim);

ALTER TABLE ONLY public.embedding_models
    ADD CONSTRAINT embedding_models_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.hermes_pgvector_installation
    ADD CONSTRAINT hermes_pgvector_installation_pkey PRIMARY KEY (is_the_one);

ALTER TABLE ONLY public.hermes_pgvector_migrations
    ADD CONSTRAINT hermes_pgvector_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.journal_writers
    ADD CONSTRAINT journal_writers_pkey PRIMARY KEY (writer);

ALTER TABLE ONLY public.lexeme_statistics
    ADD CONSTRAINT lexeme_statistics_pkey PRIMARY KEY (source, lexeme) INCLUDE (fraction);

ALTER TABLE ONLY public.memory_entries
    ADD CONSTRAINT memory_entries_pkey PRIMARY KEY (agent_identity, id);

ALTER TABLE ONLY public.memory_files
    ADD CONSTRAINT memory_files_pkey PRIMARY KEY (home_id, target);

ALTER TABLE ONLY public.memory_operations
    ADD CONSTRAINT memory_operations_pkey PRIMARY KEY (agent_identity, target, order_us, writer, seq, part);

ALTER TABLE ONLY public.memory_sources
    ADD CONSTRAINT memory_sources_pkey PRIMARY KEY (agent_identity, entry_id, home_id);

ALTER TABLE ONLY public.memory_vectors_1
    ADD CONSTRAINT memory_vectors_1_pkey PRIMARY KEY (agent_identity, id, chunk);

ALTER TABLE ONLY public.pending_vectors
    ADD CONSTRAINT pending_vectors_pkey PRIMARY KEY (agent_identity, kind, id);

ALTER TABLE ONLY public.theme_indexes
    ADD CONSTRAINT theme_indexes_pkey PRIMARY KEY (agent_identity, model_id);

ALTER TABLE ONLY public.turn_vectors_1
    ADD CONSTRAINT turn_vectors_1_pkey PRIMARY KEY (agent_identity, id, chunk);

CREATE INDEX conversations_lexemes ON public.conversations USING gin (lexemes) WITH (gin_pending_list_limit='4096');

CREATE INDEX conversations_session_timeline ON public.conversations USING btree (agent_identity, session_id, ts DESC);

CREATE INDEX conversations_timeline ON public.conversations USING btree (agent_identity, ts DESC);

CREATE UNIQUE INDEX conversations_turn_key ON public.conversations USING btree (agent_identity, session_id, digest, ordinal);

CREATE UNIQUE INDEX delegations_edge ON public.delegations USING btree (agent_identity, session_id, child_session_id, task_digest);

CREATE UNIQUE INDEX embedding_models_current ON public.embedding_models USING btree (is_current) WHERE is_current;

CREATE UNIQUE INDEX memory_entries_content_key ON public.memory_entries USING btree (agent_identity, target, public.hermes_digest(content));

CREATE INDEX memory_entries_lexemes ON public.memory_entries USING gin (lexemes) WITH (gin_pending_list_limit='4096');

CREATE INDEX memory_entries_timeline ON public.memory_entries USING btree (agent_identity, target, updated_at DESC);

CREATE INDEX memory_sources_home ON public.memory_sources USING btree (home_id, agent_identity);

CREATE INDEX memory_vectors_1_codes ON public.memory_vectors_1 USING btree (agent_identity) INCLUDE (id, ts, target, code) WITH (fillfactor='100');

CREATE INDEX pending_vectors_due ON public.pending_vectors USING btree (due_at);

CREATE INDEX turn_vectors_1_codes ON public.turn_vectors_1 USING btree (agent_identity) INCLUDE (id, ts, code) WITH (fillfactor='100');

CREATE TRIGGER lexemes_of_edited BEFORE UPDATE OF content ON public.conversations FOR EACH ROW WHEN (((new.content IS DISTINCT FROM old.content) AND (NOT (new.lexemes IS DISTINCT FROM old.lexemes)))) EXECUTE FUNCTION public.hermes_fill_lexemes();

CREATE TRIGGER lexemes_of_edited BEFORE UPDATE OF content ON public.memory_entries FOR EACH ROW WHEN (((new.content IS DISTINCT FROM old.content) AND (NOT (new.lexemes IS DISTINCT FROM old.lexemes)))) EXECUTE FUNCTION public.hermes_fill_lexemes();

CREATE TRIGGER lexemes_of_moved BEFORE UPDATE OF agent_identity ON public.conversations FOR EACH ROW WHEN ((new.agent_identity IS DISTINCT FROM old.agent_identity)) EXECUTE FUNCTION public.hermes_move_lexemes();

CREATE TRIGGER lexemes_of_moved BEFORE UPDATE OF agent_identity ON public.memory_entries FOR EACH ROW WHEN ((new.agent_identity IS DISTINCT FROM old.agent_identity)) EXECUTE FUNCTION public.hermes_move_lexemes();

CREATE TRIGGER lexemes_of_new BEFORE INSERT ON public.conversations FOR EACH ROW WHEN ((new.lexemes IS NULL)) EXECUTE FUNCTION public.hermes_fill_lexemes();

CREATE TRIGGER lexemes_of_new BEFORE INSERT ON public.memory_entries FOR EACH ROW WHEN ((new.lexemes IS NULL)) EXECUTE FUNCTION public.hermes_fill_lexemes();

ALTER TABLE ONLY public.memory_sources
    ADD CONSTRAINT memory_sources_agent_identity_entry_id_fkey FOREIGN KEY (agent_identity, entry_id) REFERENCES public.memory_entries(agent_identity, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.memory_vectors_1
    ADD CONSTRAINT memory_vectors_1_agent_identity_id_fkey FOREIGN KEY (agent_identity, id) REFERENCES public.memory_entries(agent_identity, id) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY public.theme_indexes
    ADD CONSTRAINT theme_indexes_model_id_fkey FOREIGN KEY (model_id) REFERENCES public.embedding_models(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.turn_vectors_1
    ADD CONSTRAINT turn_vectors_1_agent_identity_id_fkey FOREIGN KEY (agent_identity, id) REFERENCES public.conversations(agent_identity, id) ON UPDATE CASCADE ON DELETE CASCADE;
