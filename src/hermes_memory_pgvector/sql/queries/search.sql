-- models --
-- The embedding models whose vectors the database holds: the current one first, then the others, the newest first.
SELECT id, name, dim, unrelated_mean, unrelated_sd, query_prefix, document_prefix, 'halfvec'::regtype::oid::bigint AS vector_oid, is_current
FROM embedding_models ORDER BY NOT is_current, id DESC;


-- near --
-- Part of a search: the 60 texts of the theme nearest to the question, each with how many rows say it. Every vector is
-- compared; the distance is a function, not an operator, so that no approximate index can ever serve it.
SELECT v.agent_identity, max(v.id) AS id, min(cosine_distance(v.embedding, %(vector)s::halfvec)) AS distance,
       count(*) FILTER (WHERE v.chunk = 0)::integer AS copies
FROM here JOIN {vectors} AS v ON v.agent_identity = here.theme
WHERE {bounds of v}
GROUP BY v.agent_identity, v.{same} ORDER BY 3 LIMIT 60


-- near_everywhere --
-- Part of a search: the same among all that scope `all` may see. The operator lets the index over all shared themes serve
-- it, where the owner has made one.
SELECT n.agent_identity, max(n.id) AS id, min(n.distance) AS distance, count(*) FILTER (WHERE n.chunk = 0)::integer AS copies
FROM ((SELECT v.agent_identity, v.id, v.chunk, v.{same} AS same, v.embedding <=> %(vector)s::halfvec AS distance
       FROM {vectors} AS v WHERE NOT hermes_is_private(v.agent_identity) AND {bounds of v}
       ORDER BY v.embedding <=> %(vector)s::halfvec LIMIT 400)
      UNION ALL
      (SELECT v.agent_identity, v.id, v.chunk, v.{same}, cosine_distance(v.embedding, %(vector)s::halfvec)
       FROM here JOIN {vectors} AS v ON v.agent_identity = here.theme
       WHERE hermes_is_private(here.theme) AND {bounds of v})) AS n
GROUP BY n.agent_identity, n.same ORDER BY 3 LIMIT 60


-- near_nothing --
-- Part of a search by words alone.
SELECT NULL::text AS agent_identity, NULL::bigint AS id, NULL::double precision AS distance, NULL::integer AS copies WHERE false


-- similarity --
-- Part of a search: how near row `w` is to the question, by its nearest piece; null without a vector.
(SELECT min(cosine_distance(v.embedding, %(vector)s::halfvec)) FROM {vectors} AS v
 WHERE v.agent_identity = w.agent_identity AND v.id = w.id)


-- bounds --
-- Part of a search: whether row `x` lies within what is asked for.
(%(since)s::timestamptz IS NULL OR x.{ts} >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR x.{ts} < %(until)s::timestamptz)
  AND (%(narrow)s::text[] IS NULL OR x.id IN (SELECT placed.id FROM placed)) AND x.id NOT IN (SELECT left_out.id FROM left_out)


-- search --
-- The best rows for a question, by meaning and by words; composed by store.search_statement for a kind of row,
-- a model's vectors or none, and one theme or all.
--
-- theme: under the name it has now; is_own: whether it is the asker's own, as nobody else follows an old name into a private
-- theme. narrow: sessions or targets, null for all. since, until: null for open, until is exclusive. trusted_only.
-- text: the question, empty to search by
-- meaning alone; asking: words that count half. mean, sd: the cosine of unrelated texts in this model. times: where a time
-- is asked for, words that speak of one, as to_tsquery takes them. speaker, names (a pattern),
-- period_start, period_end: who and when the question names. is_ambient: nobody asked. min_similarity: null
-- for none. meaning_weight: what a standard deviation of meaning counts in the rank. step: what each further hit of a session
-- loses. asks_now: whether the newest comes first among those that say the same. half_life_days, now, limit. wants_terms: whether each row also tells how much each word counts.
--
-- A row's meaning is how many standard deviations it is nearer than unrelated texts. Its merit, in units of the share of the
-- question's words that it contains, ranks it and judges it: asked, the best row must reach the bar and every other one
-- half of it; unasked, each row must reach a higher bar. A row without a vector is judged as if its meaning were 3.
WITH here AS MATERIALIZED (
    SELECT named.theme, {markers} AS inside, to_tsquery(hermes_language(), %(times)s::text) AS times
    FROM (SELECT coalesce((SELECT alias.new FROM theme_aliases AS alias
                           WHERE alias.old = %(theme)s::text AND (%(is_own)s::boolean OR NOT hermes_is_private(alias.new))),
                          %(theme)s::text) AS theme) AS named
), left_out AS MATERIALIZED (
    SELECT r.id FROM here JOIN {texts} AS r ON {theme of r}
    WHERE %(trusted_only)s::boolean AND r.untrusted
), placed AS MATERIALIZED (
    SELECT r.id FROM here JOIN {texts} AS r ON {theme of r}
    WHERE %(narrow)s::text[] IS NOT NULL AND r.{place} = ANY (%(narrow)s::text[])
), near AS MATERIALIZED (
    {near}
), searched AS MATERIALIZED (
    SELECT greatest(count(*), 100)::double precision AS rows, least(400, greatest(60, count(*) / 3)) AS common
    FROM (SELECT FROM here JOIN {texts} AS r ON {theme of r} LIMIT 5000) AS counted
), asked AS MATERIALIZED (
    -- Where signs come in pairs, a single one says nothing.
    SELECT row_number() OVER () AS place, w.lexeme, hermes_quote_lexeme(w.lexeme)::tsquery AS query,
           (hermes_quote_lexeme(w.lexeme) || ':A')::tsquery AS own,
           CASE WHEN w.lexeme = ANY (w.asking) THEN 0.5 ELSE 1.0 END AS weight
    FROM (SELECT q.*, unnest(q.lexemes) AS lexeme
          FROM (SELECT tsvector_to_array(hermes_text_lexemes(%(text)s::text)) AS lexemes,
                       tsvector_to_array(to_tsvector(hermes_language(), %(asking)s::text)) AS asking OFFSET 0) AS q) AS w
    WHERE length(w.lexeme) > 1 OR ascii(w.lexeme) < 3584
       OR NOT EXISTS (SELECT FROM unnest(w.lexemes) AS pair (signs) WHERE length(pair.signs) = 2 AND strpos(pair.signs, w.lexeme) > 0)
    ORDER BY length(w.lexeme) DESC LIMIT 31
), found AS MATERIALIZED (
    -- The theme is compared so that only the index of words serves: no statistics make Postgres read a whole theme.
    SELECT a.place, hit.agent_identity, hit.id, count(*) OVER (PARTITION BY a.place) AS frequency
    FROM here CROSS JOIN asked AS a CROSS JOIN LATERAL (
        SELECT r.agent_identity, r.id FROM {texts} AS r
        WHERE r.lexemes @@ (here.inside && a.query) AND {theme of unindexed r} AND {bounds of r} LIMIT 401) AS hit
), term AS MATERIALIZED (
    -- A token that nobody wrote counts nothing: its words stand for it.
    SELECT w.*, w.rarity / nullif(sum(w.rarity) OVER (), 0) AS share, 1 << (row_number() OVER () - 1)::integer AS bit
    FROM (SELECT a.*, coalesce(f.frequency, 0) AS frequency,
                 CASE WHEN f.frequency IS NULL AND a.lexeme ~ '[^[:alnum:]]' THEN 0
                      ELSE a.weight * ln(1 + s.rows / greatest(f.frequency, 0.5)) END AS rarity
          FROM searched AS s CROSS JOIN asked AS a
          LEFT JOIN (SELECT DISTINCT found.place, found.frequency FROM found) AS f ON f.place = a.place
          ORDER BY rarity DESC LIMIT 24) AS w
), worded AS MATERIALIZED (
    -- A word that many rows contain selects none by itself, unless there are no others.
    SELECT f.agent_identity, f.id FROM searched AS s CROSS JOIN found AS f JOIN term AS t ON t.place = f.place
    WHERE t.frequency <= s.common OR NOT EXISTS (SELECT FROM term AS other WHERE other.frequency BETWEEN 1 AND s.common)
    GROUP BY f.agent_identity, f.id ORDER BY sum(t.rarity) DESC, f.id DESC LIMIT 160
), candidate AS (
    SELECT n.agent_identity, n.id, n.distance, n.copies FROM near AS n
    UNION ALL
    SELECT w.agent_identity, w.id, {similarity}, 1 FROM worded AS w WHERE w.id NOT IN (SELECT n.id FROM near AS n)
), measured AS MATERIALIZED (
    SELECT r.agent_identity, r.id, r.{ts} AS ts, r.{place} AS place, {role} AS role, r.content, {origin} AS origin, r.untrusted, {unattended} AS is_unattended,
           r.metadata -> 'tools' AS tools, c.copies, (1 - c.distance)::real AS similarity,
           (1 - c.distance - %(mean)s::real) / %(sd)s::real AS meaning, words.bits,
           -- Long texts contain many words by chance.
           coalesce(words.matched, 0) / (1 + ln(greatest(octet_length(r.content), 360) / 360.0::double precision)) AS coverage,
           coalesce(r.lexemes @@ (SELECT here.times FROM here), false) AS answers_when,
           coalesce({author} ~* %(names)s::text, false) AS is_by_author
    FROM candidate AS c JOIN {texts} AS r ON r.agent_identity = c.agent_identity AND r.id = c.id AND r.hidden_by IS NULL
    CROSS JOIN LATERAL (
        SELECT sum(CASE f.kind WHEN 2 THEN f.share WHEN 1 THEN 0.6 * f.share END) AS matched,
               bit_or(f.bit) FILTER (WHERE f.kind = 2) AS bits
        FROM (SELECT t.share, t.bit, CASE WHEN NOT r.lexemes @@ t.query THEN 0 WHEN r.lexemes @@ t.own THEN 2 ELSE 1 END AS kind
              FROM term AS t WHERE t.frequency > 0 OFFSET 0) AS f) AS words
), weighed AS (
    SELECT m.*, m.coverage + 0.5 * coalesce((SELECT sum(t.share) FROM term AS t WHERE m.session_bits & t.bit > 0), 0) AS worded
    FROM (SELECT m.*, {session_bits} AS session_bits FROM measured AS m) AS m
), judged AS (
    SELECT w.*, w.merit >= CASE WHEN %(is_ambient)s::boolean AND EXISTS (SELECT FROM term) THEN {ambient_bar}
                                WHEN max(w.merit) OVER () >= {bar} THEN {bar} / 2 END
                AND NOT (%(is_ambient)s::boolean AND w.is_unattended)
                AND coalesce(w.similarity >= %(min_similarity)s::real, true) AS is_hit,
           ((w.worded + %(meaning_weight)s::real * coalesce(w.meaning, 0)
             + CASE WHEN w.ts >= %(period_start)s::timestamptz AND w.ts < %(period_end)s::timestamptz THEN 0.5 ELSE 0 END
             + CASE WHEN w.role = %(speaker)s::text THEN 0.35 ELSE 0 END
             + CASE WHEN w.answers_when THEN 0.3 ELSE 0 END
             + CASE WHEN w.is_by_author THEN 0.2 ELSE 0 END)
            -- After a hundred half-lives age counts no further: smaller numbers are an error in Postgres.
            * CASE WHEN %(half_life_days)s::real > 0 AND w.ts < %(now)s::timestamptz
                   THEN 0.5 ^ least(extract(epoch FROM %(now)s::timestamptz - w.ts)::double precision / 86400
                                    / %(half_life_days)s::real, 100) ELSE 1 END)::real AS rank
    FROM (SELECT w.*, w.worded + 0.06 * coalesce(w.meaning, 3) AS merit FROM weighed AS w) AS w
), folded AS (
    SELECT j.*, row_number() OVER same_text AS copy, greatest(max(j.copies) OVER same_text, count(*) OVER same_text)::integer AS count
    FROM judged AS j WHERE j.is_hit
    WINDOW same_text AS (PARTITION BY j.agent_identity, hashtextextended(j.content, 0) ORDER BY j.rank DESC, j.ts DESC, j.id DESC
                         ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
), ordered AS (
    SELECT f.*, (f.rank - %(step)s::real * least(4, f.further))::real AS final_rank
    FROM (SELECT f.*, row_number() OVER (PARTITION BY f.agent_identity, f.place ORDER BY f.rank DESC, f.id) - 1 AS further
          FROM folded AS f WHERE f.copy = 1) AS f
), fitting AS (
    -- Of the first five, those that have most of the words, by the speaker of the first of them: the newest tells what is now.
    SELECT o.*, %(asks_now)s::boolean AND o.nth <= 5 AND o.coverage >= 0.55 AS fits
    FROM (SELECT o.*, row_number() OVER (ORDER BY o.final_rank DESC, o.ts DESC, o.id DESC) AS nth FROM ordered AS o) AS o
), rival AS (
    SELECT f.*, f.fits AND f.role = first_value(f.role) OVER (PARTITION BY f.fits ORDER BY f.nth) AS is_rival FROM fitting AS f
), seated AS (
    SELECT r.*, row_number() OVER (PARTITION BY r.is_rival ORDER BY r.ts DESC, r.nth) AS newness,
           array_agg(r.nth) FILTER (WHERE r.is_rival) OVER seats AS places,
           array_agg(r.final_rank) FILTER (WHERE r.is_rival) OVER seats AS ranks
    FROM rival AS r WINDOW seats AS (ORDER BY r.nth ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
)
SELECT o.agent_identity, o.id, o.ts, o.content, o.similarity, o.meaning::real AS meaning,
       CASE WHEN o.is_rival THEN o.ranks[o.newness] ELSE o.final_rank END AS rank, o.count, o.place,
       o.role, o.origin, o.untrusted, o.tools,
       ARRAY(SELECT t.lexeme FROM term AS t WHERE o.bits & t.bit > 0 ORDER BY t.share DESC) AS words,
       coalesce((SELECT sum(t.share) FROM term AS t WHERE o.bits & t.bit > 0), 0)::real AS words_share,
       CASE WHEN %(wants_terms)s::boolean THEN (
           SELECT jsonb_agg(jsonb_build_array(t.lexeme, t.share, t.frequency = 0) ORDER BY t.share DESC) FROM term AS t) END AS terms
FROM seated AS o ORDER BY CASE WHEN o.is_rival THEN o.places[o.newness] ELSE o.nth END LIMIT %(limit)s::integer;


-- size --
-- How many rows of a theme that are not hidden lie within a question's bounds, counted up to a limit?
--
-- kind (memory or turn); theme; narrow (session ids or targets, null for all); since, until (until is exclusive; null for
-- open); limit.
SELECT CASE WHEN %(kind)s::text = 'memory' THEN (
    SELECT count(*) FROM (
        SELECT FROM memory_entries AS entry
        WHERE entry.agent_identity = %(theme)s::text AND entry.hidden_by IS NULL
          AND (%(narrow)s::text[] IS NULL OR entry.target = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR entry.updated_at >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR entry.updated_at < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
ELSE (
    SELECT count(*) FROM (
        SELECT FROM conversations AS turn
        WHERE turn.agent_identity = %(theme)s::text AND turn.hidden_by IS NULL
          AND (%(narrow)s::text[] IS NULL OR turn.session_id = ANY (%(narrow)s::text[]))
          AND (%(since)s::timestamptz IS NULL OR turn.ts >= %(since)s::timestamptz)
          AND (%(until)s::timestamptz IS NULL OR turn.ts < %(until)s::timestamptz)
        LIMIT %(limit)s::integer) AS counted)
END;
