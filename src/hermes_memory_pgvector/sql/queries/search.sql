-- current_model --
-- The embedding model whose vectors are searched.
SELECT id, name, dim, min_similarity, candidates, 'halfvec'::regtype::oid::bigint AS vector_oid, is_current
FROM embedding_models WHERE is_current;


-- memories --
-- The best memories for a question, by meaning and by words.
--
-- source: a model's vector table, or memory_entries for words alone. theme: under the name it has now.
-- is_own: whether the theme is the asker's own; nobody else follows an old name into a private theme.
-- all_themes: true adds every public theme.
-- narrow: targets, null for all. since, until: null for open, until is exclusive.
-- terms, queries, own_queries, weights, is_exact: text.lexemes.Term as five arrays.
-- vector, candidates: the question's vector and how many rows are compared exactly; null for words alone.
-- min_similarity, min_coverage, needs_both: see hermes_is_hit. unrelated: the similarity that unrelated texts can have.
-- asks_when, speaker, authors (a tsquery), period_start, period_end: who and when the question names, null for nothing.
-- half_life_days: 0 leaves age out. now. by_session: the best of each session first. limit. trust: see hermes_excluded.
SELECT hit.agent_identity, hit.id, hit.ts, hit.content, hit.similarity, hit.rank, hit.count, hit.place AS target,
       hermes_origin_of_memory(row.origin, row.metadata) AS origin, row.trust, row.metadata -> 'tools' AS tools
FROM hermes_search(
    NULL::{source},
    coalesce((SELECT alias.new FROM theme_aliases AS alias
              WHERE alias.old = %(theme)s::text AND (%(is_own)s::boolean OR NOT hermes_is_private(alias.new))),
             %(theme)s::text),
    %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
    %(is_exact)s::boolean[], %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(min_coverage)s::real,
    %(needs_both)s::boolean, %(unrelated)s::real, %(asks_when)s::boolean, %(speaker)s::text, %(authors)s::text,
    %(period_start)s::timestamptz, %(period_end)s::timestamptz, %(half_life_days)s::real, %(now)s::timestamptz,
    %(by_session)s::boolean, %(limit)s::integer, %(trust)s::text)
    WITH ORDINALITY AS hit (agent_identity, id, ts, content, similarity, rank, count, place, role, number)
CROSS JOIN LATERAL (
    SELECT found.origin, found.trust, found.metadata FROM memory_entries AS found
    WHERE found.agent_identity = hit.agent_identity AND found.id = hit.id OFFSET 0) AS row
ORDER BY hit.number;


-- models --
-- The embedding models whose vectors the database holds: the current one first, then the others, the newest first.
SELECT id, name, dim, min_similarity, candidates, 'halfvec'::regtype::oid::bigint AS vector_oid, is_current
FROM embedding_models ORDER BY NOT is_current, id DESC;


-- raise_candidates --
-- Raises the number of rows compared exactly for a model whose bits select too roughly.
UPDATE embedding_models SET candidates = least(25600, greatest(candidates, %(candidates)s::integer))
WHERE id = %(id)s::integer;


-- refresh_statistics --
-- Brings the word statistics up to date with what ANALYZE knows, unless another process is at it.
SELECT hermes_refresh_statistics() WHERE pg_try_advisory_xact_lock(hashtextextended('hermes-statistics', 7));


-- size --
-- How many rows of a theme lie within a question's bounds, counted up to a limit?
--
-- kind (memory or turn); theme; narrow (session ids or targets, null for all); since, until (until is exclusive; null for
-- open); limit.
SELECT CASE WHEN %(kind)s::text = 'memory' THEN (
    SELECT count(*) FROM (
        SELECT FROM memory_entries AS entry
        WHERE entry.agent_identity = %(theme)s::text AND (%(narrow)s::text[] IS NULL OR entry.target = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
ELSE (
    SELECT count(*) FROM (
        SELECT FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s::text AND (%(narrow)s::text[] IS NULL OR turn.session_id = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
END;


-- turns --
-- The best turns for a question, by meaning and by words.
--
-- source: a model's vector table, or conversations for words alone. theme: under the name it has now.
-- is_own: whether the theme is the asker's own; nobody else follows an old name into a private theme.
-- all_themes: true adds every public theme.
-- narrow: session ids, null for all. since, until: null for open, until is exclusive.
-- terms, queries, own_queries, weights, is_exact: text.lexemes.Term as five arrays.
-- vector, candidates: the question's vector and how many rows are compared exactly; null for words alone.
-- min_similarity, min_coverage, needs_both: see hermes_is_hit. unrelated: the similarity that unrelated texts can have.
-- asks_when, speaker, authors (a tsquery), period_start, period_end: who and when the question names, null for nothing.
-- half_life_days: 0 leaves age out. now. by_session: the best of each session first. limit. trust: see hermes_excluded.
SELECT hit.agent_identity, hit.id, hit.ts, hit.content, hit.similarity, hit.rank, hit.count, hit.place AS session_id, hit.role,
       hermes_origin_of_turn(row.origin, row.role) AS origin, row.trust, row.metadata -> 'tools' AS tools
FROM hermes_search(
    NULL::{source},
    coalesce((SELECT alias.new FROM theme_aliases AS alias
              WHERE alias.old = %(theme)s::text AND (%(is_own)s::boolean OR NOT hermes_is_private(alias.new))),
             %(theme)s::text),
    %(all_themes)s::boolean, %(narrow)s::text[], %(since)s::timestamptz,
    %(until)s::timestamptz, %(terms)s::text[], %(queries)s::text[], %(own_queries)s::text[], %(weights)s::real[],
    %(is_exact)s::boolean[], %(vector)s::halfvec, %(candidates)s::integer, %(min_similarity)s::real, %(min_coverage)s::real,
    %(needs_both)s::boolean, %(unrelated)s::real, %(asks_when)s::boolean, %(speaker)s::text, %(authors)s::text,
    %(period_start)s::timestamptz, %(period_end)s::timestamptz, %(half_life_days)s::real, %(now)s::timestamptz,
    %(by_session)s::boolean, %(limit)s::integer, %(trust)s::text)
    WITH ORDINALITY AS hit (agent_identity, id, ts, content, similarity, rank, count, place, role, number)
CROSS JOIN LATERAL (
    SELECT found.origin, found.role, found.trust, found.metadata FROM conversations AS found
    WHERE found.agent_identity = hit.agent_identity AND found.id = hit.id OFFSET 0) AS row
ORDER BY hit.number;


-- verify --
-- For sampled vectors, the share of the ten turns brute force finds in a theme that the search finds too.
--
-- theme; samples (how many vectors, a third of them of other themes); candidates (how many rows are compared exactly).
WITH sample AS MATERIALIZED (
    (SELECT v.embedding FROM {turn_vectors} AS v WHERE v.agent_identity = %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer - %(samples)s::integer / 3)
    UNION ALL
    (SELECT v.embedding FROM (SELECT * FROM {turn_vectors} LIMIT 2000) AS v WHERE v.agent_identity <> %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer / 3)
), compared AS (
    SELECT exact.ids[1:10] AS exact, found.ids[1:10] AS found
    FROM sample AS s,
         hermes_nearest_exact(NULL::{turn_vectors}, %(theme)s::text, false, NULL, NULL, NULL, s.embedding) AS exact,
         hermes_nearest_in_theme(NULL::{turn_vectors}, %(theme)s::text, NULL, NULL, NULL, s.embedding,
                                 %(candidates)s::integer, -1, 10) AS found
)
SELECT cardinality(ARRAY(SELECT unnest(exact) INTERSECT SELECT unnest(found)))::real / cardinality(exact)
FROM compared WHERE cardinality(exact) > 0;
