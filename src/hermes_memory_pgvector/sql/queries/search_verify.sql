-- For sampled vectors, the share of the true ten nearest turns of a theme that the search by code would find.
--
-- theme; samples (how many vectors, a third of them of other themes); candidates.
WITH sample AS MATERIALIZED (
    (SELECT v.embedding, v.code FROM {turn_vectors} AS v WHERE v.agent_identity = %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer - %(samples)s::integer / 3)
    UNION ALL
    (SELECT v.embedding, v.code FROM (SELECT * FROM {turn_vectors} LIMIT 2000) AS v WHERE v.agent_identity <> %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer / 3)
), compared AS (
    SELECT ARRAY(SELECT v.id FROM {turn_vectors} AS v WHERE v.agent_identity = %(theme)s::text
                 ORDER BY cosine_distance(v.embedding, s.embedding), v.id LIMIT 10) AS exact,
           ARRAY(SELECT c.id FROM (
                     SELECT v.id, v.embedding FROM {turn_vectors} AS v WHERE v.agent_identity = %(theme)s::text
                     ORDER BY hamming_distance(v.code, s.code) LIMIT hermes_candidates(
                         %(candidates)s::integer, '{turn_vectors}'::regclass, 'conversations', %(theme)s::text)) AS c
                 ORDER BY cosine_distance(c.embedding, s.embedding), c.id LIMIT 10) AS found
    FROM sample AS s
)
SELECT cardinality(ARRAY(SELECT unnest(exact) INTERSECT SELECT unnest(found)))::real / cardinality(exact)
FROM compared WHERE cardinality(exact) > 0;
