-- For sampled vectors, the share of the ten turns brute force finds in a theme that the search finds too.
--
-- theme; samples (how many vectors, a third of them of other themes); candidates. Two searches without words: with every
-- row compared, and as anyone would search.
WITH sample AS MATERIALIZED (
    (SELECT v.embedding FROM {turn_vectors} AS v WHERE v.agent_identity = %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer - %(samples)s::integer / 3)
    UNION ALL
    (SELECT v.embedding FROM (SELECT * FROM {turn_vectors} LIMIT 2000) AS v WHERE v.agent_identity <> %(theme)s::text
     ORDER BY random() LIMIT %(samples)s::integer / 3)
), compared AS (
    SELECT ARRAY(SELECT f.id FROM hermes_search_turns(
               NULL::{turn_vectors}, %(theme)s::text, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, s.embedding,
               2147483647, -1, 0, false, NULL, NULL, NULL, 0, now(), 10) AS f) AS exact,
           ARRAY(SELECT f.id FROM hermes_search_turns(
               NULL::{turn_vectors}, %(theme)s::text, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, s.embedding,
               %(candidates)s::integer, -1, 0, false, NULL, NULL, NULL, 0, now(), 10) AS f) AS found
    FROM sample AS s
)
SELECT cardinality(ARRAY(SELECT unnest(exact) INTERSECT SELECT unnest(found)))::real / cardinality(exact)
FROM compared WHERE cardinality(exact) > 0;
