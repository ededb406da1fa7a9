-- How the vectors of one embedding model are searched; made anew by every migration, for each model there is.
--
-- The index <table>_codes: all that is read of a row to tell whether it may be near. Its key is the theme alone: rows
-- then lie as they came, a page of one theme that is full is left full, and a theme that grows beside a hundred others
-- takes as few pages as one that came at once.
--
-- hermes_nearest_turns, _memories: the rows nearest to a question, which is what brute force would find, and how near.
-- hermes_search_turns, _memories: the best rows for a question, by meaning and by words.
--
-- Which model is meant is said by the type of the first argument, NULL::<vector table>. Functions, so that their
-- statements are planned once per connection, for any theme, and nothing has to be set around them.
--
-- The theme's rows nearest by code come from that index alone, never from an approximate index over all themes;
-- distances are functions, not operators, so that no index of that kind can ever serve them. Scope 'all' reads
-- the codes of all rows it may see, unless the index for it exists (`hermes-pgvector index create --all`): then it
-- compares by operator, which that index can answer; that statement is planned each time, because only with its numbers
-- known is it clear whether the index pays.
DO $search$
DECLARE
    code     text;
    vectors  record;
    former   regprocedure;
    template text;
    made     text;
    settings text := 'SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_bitmapscan = off SET jit = off SET max_parallel_workers_per_gather = 0';
    nearest text := $nearest$
CREATE FUNCTION hermes_nearest_<kind>(
    model <vectors>, theme text, everywhere boolean, narrow text[], since timestamptz, until timestamptz,
    meaning halfvec, candidates integer, min_similarity real, wanted integer,
    OUT near_themes text[], OUT near_ids bigint[], OUT similarities real[], OUT near_copies integer[]
)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
    <settings>
    AS $body$
#variable_conflict use_column
DECLARE
    asked         halfvec := l2_normalize(meaning);
    asked_code    bit varying := <code>;
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
    has_index          boolean := <has_index>;
BEGIN
    IF everywhere THEN
        breadth := CASE WHEN candidates = 2147483647 THEN candidates ELSE least(candidates, 600) END;
        IF candidates < 2147483647 AND EXISTS (
            SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
            JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
            WHERE i.indrelid = '<vectors>'::regclass AND m.amname = 'hnsw' AND i.indisvalid
              AND pg_get_expr(i.indpred, i.indrelid) LIKE '%hermes_is_private%') THEN
            breadth := least(1000, candidates);
            PERFORM set_config('hnsw.ef_search', breadth::text, true),
                    set_config('hnsw.iterative_scan', 'relaxed_order', true);
            EXECUTE $everywhere$
                SELECT array_agg(c.agent_identity), array_agg(c.id) FROM (
                    (SELECT v.agent_identity, v.id FROM <vectors> AS v
                     WHERE NOT hermes_is_private(v.agent_identity) AND <inside>
                     ORDER BY v.code <~> $1 LIMIT $2)
                    UNION
                    (SELECT v.agent_identity, v.id FROM <vectors> AS v
                     WHERE v.agent_identity = $3 AND hermes_is_private($3) AND <inside>
                     ORDER BY hamming_distance(v.code, $1) LIMIT $2)) AS c $everywhere$
            INTO chosen_themes, chosen_ids USING asked_code, breadth, theme, since, until, narrow;
        ELSE
            size := (SELECT least(2147483647, c.reltuples) FROM pg_catalog.pg_class AS c WHERE c.oid = '<vectors>'::regclass);
            IF size >= 5000 AND breadth < size / 10 AND narrow IS NULL AND since IS NULL AND until IS NULL THEN
                -- As in a large theme: a sample tells the distance that decides. It is large enough that it rarely tells one
                -- within which too few rows lie, for then all are read a second time.
                SELECT array_agg(s.distance ORDER BY s.distance) INTO sample FROM (
                    SELECT hamming_distance(v.code, asked_code) AS distance
                    FROM <vectors> AS v TABLESAMPLE SYSTEM (least(100, greatest(200000.0 / size, 1000.0 / breadth))) REPEATABLE (1)) AS s;
                decisive := sample[1 + cardinality(sample) * 2.5 * breadth / size];
            END IF;
            LOOP
                SELECT array_agg(c.agent_identity), array_agg(c.id) INTO chosen_themes, chosen_ids FROM (
                    SELECT v.agent_identity, v.id FROM <vectors> AS v
                    WHERE coalesce(hamming_distance(v.code, asked_code) <= decisive, true)
                      AND (NOT hermes_is_private(v.agent_identity) OR v.agent_identity = theme)
                      AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true) AND <everywhere_narrowed>
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
                  SELECT v.id, <twin> AS twin, (v.chunk = 0)::integer AS copy,
                         1 - cosine_distance(v.embedding, asked) AS similarity
                  FROM <vectors> AS v WHERE v.agent_identity = c.theme AND v.id = c.id OFFSET 0) AS v
              GROUP BY c.theme, v.twin ORDER BY max(v.similarity) DESC LIMIT 60) AS n;
    ELSIF candidates = 2147483647 THEN
        SELECT array_agg(n.id), array_agg(n.similarity), array_agg(n.copies) INTO near_ids, similarities, near_copies
        FROM (SELECT max(v.id) AS id, (1 - min(cosine_distance(v.embedding, asked)))::real AS similarity,
                     greatest(1, count(*) FILTER (WHERE v.chunk = 0))::integer AS copies
              FROM <vectors> AS v
              WHERE v.agent_identity = theme AND <narrowed>
                AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
              GROUP BY <twin> ORDER BY 2 DESC LIMIT 60) AS n;
    ELSE
        size := hermes_theme_size('<vectors>'::regclass, '<table>', theme);
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
                                     FROM (SELECT v.id, v.code FROM <vectors> AS v WHERE v.agent_identity = %L
                                           ORDER BY v.code <~> $1 LIMIT $2) AS n ORDER BY key) $own$, theme)
                    INTO keys USING asked_code, breadth;
                ELSIF narrow IS NULL AND since IS NULL AND until IS NULL THEN
                    IF compared = 0 AND size >= 5000 THEN
                        -- What some of the rows say of the distance that decides spares most of the others the sorting.
                        decisive := (SELECT s.distance FROM (
                            SELECT hamming_distance(v.code, asked_code) AS distance FROM <vectors> AS v
                            WHERE v.agent_identity = theme LIMIT size / 20) AS s ORDER BY 1 OFFSET breadth / 10 LIMIT 1);
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM <vectors> AS v
                                      WHERE v.agent_identity = theme AND hamming_distance(v.code, asked_code) <= decisive
                                      ORDER BY key LIMIT breadth);
                    END IF;
                    IF compared > 0 OR coalesce(cardinality(keys), 0) < breadth THEN
                        keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                      FROM <vectors> AS v WHERE v.agent_identity = theme ORDER BY key LIMIT breadth);
                    END IF;
                ELSE
                    keys := ARRAY(SELECT (hamming_distance(v.code, asked_code)::bigint << 44) + v.id AS key
                                  FROM <vectors> AS v
                                  WHERE v.agent_identity = theme AND <narrowed>
                                    AND coalesce(v.ts >= since, true) AND coalesce(v.ts < until, true)
                                  ORDER BY key LIMIT breadth);
                END IF;
                EXIT WHEN compared = cardinality(keys);
            END IF;
            -- So few that all are compared at once; which is exact, whatever their codes say.
            upto := CASE WHEN compared = 0 AND cardinality(keys) < least(breadth, 400) THEN 400 ELSE upto END;
            upto := least(cardinality(keys), upto);
            SELECT found_ids || array_agg(v.id), found_twins || array_agg(<twin>), found_similarities || array_agg(v.similarity),
                   found_distances || array_agg(v.distance)
            INTO found_ids, found_twins, found_similarities, found_distances
            FROM (SELECT v.*, (1 - cosine_distance(v.embedding, asked))::real AS similarity,
                         hamming_distance(v.code, asked_code)::real AS distance
                  FROM <vectors> AS v
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
$body$
$nearest$;
    search  text := $search_template$
CREATE FUNCTION hermes_search_<kind>(
    model <vectors>, theme text, everywhere boolean, narrow text[], since timestamptz, until timestamptz,
    terms text[], queries text[], own_queries text[], weights real[], meaning halfvec, candidates integer,
    min_similarity real, min_coverage real, asks_when boolean, speaker text, period_start timestamptz,
    period_end timestamptz, half_life_days real, now timestamptz, wanted integer
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer,
                 place text, role text)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 10
    <settings>
    AS $body$
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
    FROM hermes_nearest_<kind>(model, theme, everywhere, narrow, since, until, meaning, candidates, min_similarity, wanted) AS n;

    RETURN QUERY
    WITH scored AS MATERIALIZED (
        SELECT m.*, coalesce(n.copies, 1) AS copies,
               coalesce(n.similarity, (SELECT (1 - min(cosine_distance(v.embedding, asked)))::real FROM <vectors> AS v
                                       WHERE v.agent_identity = m.agent_identity AND v.id = m.id)) AS similarity
        FROM hermes_match_<kind>(theme, everywhere, narrow, since, until, terms, queries, own_queries, weights,
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
        SELECT f.*, (f.rank - <step>::double precision * least(4, row_number() OVER (
                   PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1))::real AS final_rank
        FROM folded AS f WHERE f.copy = 1
        ORDER BY final_rank DESC, f.ts DESC, f.id DESC LIMIT wanted
    )
    SELECT b.agent_identity, b.id, b.ts, t.content, b.similarity, b.final_rank, b.all_copies, b.place, b.role
    FROM best AS b JOIN <table> AS t ON t.agent_identity = b.agent_identity AND t.id = b.id
    ORDER BY b.final_rank DESC, b.ts DESC, b.id DESC;
END
$body$
$search_template$;
    -- What differs between turns and memories: (placeholder, text), replaced in this order.
    turns text[] := ARRAY[
        ['<kind>', 'turns'], ['<vectors>', $name${turn_vectors}$name$], ['<table>', 'conversations'], ['<twin>', 'v.twin'],
        ['<step>', '0.005'], ['<narrow>', '$6 IS NULL'], ['<everywhere_narrowed>', 'narrow IS NULL'],
        ['<has_index>', format('NOT everywhere AND narrow IS NULL AND since IS NULL AND until IS NULL
             AND candidates < 2147483647
             AND EXISTS (SELECT FROM theme_indexes AS i WHERE i.agent_identity = theme AND i.model_id = %s)',
             (regexp_match($name${turn_vectors}$name$, '\d+'))[1])],
        ['<narrowed>', '(narrow IS NULL OR v.id = ANY (ARRAY(SELECT c.id FROM conversations AS c
             WHERE c.agent_identity = theme AND c.session_id = ANY (narrow))))']];
    memories text[] := ARRAY[
        ['<kind>', 'memories'], ['<vectors>', $name${memory_vectors}$name$], ['<table>', 'memory_entries'], ['<twin>', 'v.id'],
        ['<step>', '0'], ['<narrow>', '($6 IS NULL OR v.target = ANY ($6))'],
        ['<everywhere_narrowed>', 'coalesce(v.target = ANY (narrow), true)'], ['<has_index>', 'false'],
        ['<narrowed>', 'coalesce(v.target = ANY (narrow), true)']];
    word text[];
BEGIN
    FOR vectors IN
        SELECT c.oid::regclass AS name, c.relname || '_codes' AS codes, t.columns,
               EXISTS (SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS own ON own.oid = i.indexrelid
                       WHERE i.indrelid = c.oid AND own.relname = c.relname || '_codes') AS has_codes,
               (SELECT k.conname FROM pg_catalog.pg_constraint AS k JOIN pg_catalog.pg_index AS i ON i.indexrelid = k.conindid
                WHERE k.conrelid = c.oid AND k.contype = 'p' AND i.indnatts > i.indnkeyatts) AS wide_key
        FROM (VALUES ('{turn_vectors}'::regclass, 'id, ts, code'), ('{memory_vectors}', 'id, ts, target, code')) AS t (id, columns)
        JOIN pg_catalog.pg_class AS c ON c.oid = t.id
    LOOP
        IF NOT vectors.has_codes THEN
            EXECUTE format('CREATE INDEX %I ON %s (agent_identity) INCLUDE (%s) WITH (fillfactor = 100)',
                           vectors.codes, vectors.name, vectors.columns);
        END IF;
        IF vectors.wide_key IS NOT NULL THEN
            -- A key from before there was this index.
            EXECUTE format('ALTER TABLE %1$s DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I PRIMARY KEY (agent_identity, id, chunk)',
                           vectors.name, vectors.wide_key);
        END IF;
    END LOOP;
    FOR former IN
        SELECT p.oid::regprocedure FROM pg_catalog.pg_proc AS p
        WHERE p.proname IN ('hermes_search_turns', 'hermes_search_memories', 'hermes_nearest_turns', 'hermes_nearest_memories')
          AND p.proargtypes[0] IN ('{turn_vectors}'::regtype, '{memory_vectors}'::regtype)
    LOOP
        EXECUTE 'DROP FUNCTION ' || former;
    END LOOP;
    SELECT string_agg(format('binary_quantize(asked - array_fill(%s::double precision, ARRAY[{dim}])::halfvec)',
                             bound / sqrt({dim})), ' || ' ORDER BY bound)
    INTO code FROM unnest(hermes_code_bounds({dim})) AS bound;
    nearest := replace(replace(nearest, '<code>', code),
                       '<inside>', '($4 IS NULL OR v.ts >= $4) AND ($5 IS NULL OR v.ts < $5) AND <narrow>');
    FOREACH template IN ARRAY ARRAY[nearest, search] LOOP
        template := replace(template, '<settings>', settings);
        made := template;
        FOREACH word SLICE 1 IN ARRAY turns LOOP made := replace(made, word[1], word[2]); END LOOP;
        EXECUTE made;
        made := template;
        FOREACH word SLICE 1 IN ARRAY memories LOOP made := replace(made, word[1], word[2]); END LOOP;
        EXECUTE made;
    END LOOP;
END
$search$;
