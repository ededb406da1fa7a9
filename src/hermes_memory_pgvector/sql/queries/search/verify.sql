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
