-- every shard, by its part of conversations, and what each distributed table of this schema is called in it
SELECT anchor.shardid, c.relname::text, c.relname || '_' || s.shardid
FROM pg_dist_shard AS anchor
JOIN pg_dist_shard AS s ON s.shardminvalue = anchor.shardminvalue
JOIN pg_dist_partition AS p ON p.logicalrelid = s.logicalrelid
JOIN pg_catalog.pg_class AS c ON c.oid = s.logicalrelid
WHERE anchor.logicalrelid = 'conversations'::regclass AND p.partmethod = 'h'
  AND c.relnamespace = quote_ident(current_schema())::regnamespace
ORDER BY anchor.shardminvalue::integer, c.relname
