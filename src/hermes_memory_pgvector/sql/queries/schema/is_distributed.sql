-- Are the tables spread over the workers of a Citus cluster? Only there is a table of this name.
SELECT to_regclass('shard_anchors') IS NOT NULL AND EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus');
