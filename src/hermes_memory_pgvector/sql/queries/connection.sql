-- set_conventions --
-- sets what statements depend on, and the time limits in milliseconds
SELECT set_config(given.name, given.value, %(is_local)s)
FROM unnest(%(names)s::text[], %(values)s::text[]) AS given (name, value);


-- has_layout --
-- Does the database say where the tables of its themes lie?
SELECT to_regclass('theme_places') IS NOT NULL;


-- is_dealt --
-- Do the tables of themes lie in several schemas?
SELECT cardinality(here.buckets) > 0 FROM hermes_pgvector_installation AS here;


-- layout --
-- In which schemas do the tables of themes lie, which of them may this role use, where do names lead without them, and which
-- themes lie elsewhere than their names say?
SELECT here.buckets,
       ARRAY(SELECT coalesce(has_schema_privilege(to_regnamespace(quote_ident(bucket.name)), 'USAGE'), false)
             FROM unnest(here.buckets) WITH ORDINALITY AS bucket (name, place) ORDER BY bucket.place),
       current_setting('search_path'), (SELECT jsonb_object_agg(other.theme, other.bucket) FROM theme_places AS other)
FROM hermes_pgvector_installation AS here;


-- enter --
-- Lets names mean the tables of a bucket until the transaction ends.
SELECT set_config('search_path', %(path)s, true);


-- places --
-- Which themes lie elsewhere than their names say?
SELECT theme, bucket FROM theme_places;


-- path --
-- Where do names lead now?
SELECT current_setting('search_path');
