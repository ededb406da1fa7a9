-- does this database have Citus?
SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus')
