-- the tables of this schema that are spread over the cluster, or whole on every node of it
SELECT c.relname::text FROM pg_dist_partition AS p JOIN pg_catalog.pg_class AS c ON c.oid = p.logicalrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND (p.partmethod = 'h' OR p.repmodel = 't')
