-- is this the coordinator of a cluster, and has it a node that takes shards?
SELECT EXISTS (SELECT FROM pg_dist_node WHERE isactive AND shouldhaveshards)
   AND (SELECT groupid = 0 FROM pg_dist_local_group)
