-- are the tables of this schema spread over a cluster?
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE partmethod = 'h' AND logicalrelid = to_regclass('conversations'))
