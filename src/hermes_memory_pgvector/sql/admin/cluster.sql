-- workers --
-- how many servers of a Citus cluster take tables; none where this database is no coordinator
SELECT count(*) FROM citus_get_active_worker_nodes()


-- is_installed --
-- whether this database may be a coordinator
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')


-- undistributed --
-- the buckets that lie on the coordinator itself
SELECT given.name FROM unnest(%s::text[]) WITH ORDINALITY AS given (name, place)
WHERE NOT EXISTS (SELECT FROM pg_dist_schema AS known WHERE known.schemaid = to_regnamespace(quote_ident(given.name)))
ORDER BY given.place


-- distribute --
-- hands a schema with all its tables to a worker
SELECT citus_schema_distribute(to_regnamespace(quote_ident(%s)))
