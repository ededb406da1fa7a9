-- What is known about each of some rows with regard to a question; hermes_rank makes one number of it.
--
-- themes, ids: the rows; similarities: their cosines to the question, null without a vector, empty for words alone;
-- copies: how many rows each stands for. own_queries find a term in a row itself, queries also in the turns before it,
-- where it counts less; idf and is_absent come from hermes_find_by_words. speaker: a role; authors: markers of the people
-- the question names.
--
-- coverage: the share of the question's words, weighted by rarity, that the row contains; long texts, which contain many
-- words by chance, count less. exact_coverage: the same of the words meant to the letter (is_exact). session_coverage:
-- the share that the rows of its session contain together.
CREATE OR REPLACE FUNCTION hermes_measure_hits(
    source {text_row}, themes text[], ids bigint[], similarities real[], copies integer[],
    queries text[], own_queries text[], is_exact boolean[], idf double precision[], is_absent boolean[],
    asks_when boolean, speaker text, authors text, period_start timestamptz, period_end timestamptz
) RETURNS TABLE (agent_identity text, id bigint, ts timestamptz, place text, role text, content_hash bigint,
                 copy_count integer, similarity real, coverage real, exact_coverage real,
                 session_coverage real, answers_when boolean, is_in_period boolean, is_by_speaker boolean,
                 is_by_author boolean)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 160 SET search_path FROM CURRENT
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
    SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
DECLARE
    named CONSTANT tsquery := authors::tsquery;
BEGIN
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT a.query::tsquery AS query, a.own::tsquery AS own, a.is_exact, a.is_absent,
               a.idf / nullif(sum(a.idf) OVER (), 0) AS share, 1 << (row_number() OVER () - 1)::integer AS bit
        FROM (SELECT * FROM unnest(queries, own_queries, is_exact, idf, is_absent) AS a (query, own, is_exact, idf, is_absent)
              ORDER BY a.idf DESC LIMIT 24) AS a
    ), measured AS MATERIALIZED (
        SELECT r.agent_identity, r.id, r.{ts} AS ts, r.{place} AS place, {role} AS role,
               hermes_content_hash(r.content) AS content_hash, coalesce(c.copies, 1) AS copies,
               octet_length(r.content) AS bytes, c.similarity, words.matched, words.exact, words.bits,
               asks_when AND r.lexemes @@ '~when'::tsquery AS answers_when,
               coalesce(r.lexemes @@ named, false) AS is_by_author
        FROM unnest(themes, ids, similarities, copies) AS c (theme, id, similarity, copies)
        JOIN {table} AS r ON r.agent_identity = c.theme AND r.id = c.id AND r.hidden_by IS NULL
        CROSS JOIN LATERAL (
            SELECT sum(CASE f.found WHEN 2 THEN f.share WHEN 1 THEN 0.6 * f.share END) AS matched,
                   sum(f.share) FILTER (WHERE f.is_exact AND f.found = 2) AS exact,
                   bit_or(f.bit) FILTER (WHERE f.found = 2) AS bits
            FROM (SELECT a.share, a.is_exact, a.bit,
                         CASE WHEN NOT r.lexemes @@ a.query THEN 0 WHEN r.lexemes @@ a.own THEN 2 ELSE 1 END AS found
                  FROM asked AS a WHERE NOT a.is_absent OFFSET 0) AS f) AS words
    )
    SELECT m.agent_identity, m.id, m.ts, m.place, m.role, m.content_hash, m.copies, m.similarity,
           (coalesce(m.matched, 0) / (1 + ln(greatest(m.bytes, 360) / 360.0::double precision)))::real, m.exact::real,
           coalesce((SELECT sum(a.share) FROM asked AS a WHERE m.session_bits & a.bit > 0), 0)::real, m.answers_when,
           coalesce(m.ts >= period_start AND m.ts < period_end, false), coalesce(m.role = speaker, false), m.is_by_author
    FROM (SELECT m.*, {session_bits} AS session_bits FROM measured AS m) AS m;
END $$;
