-- Has the installation moved to another database, or is one just being copied to here?
SELECT moved_to, filled_from::text FROM hermes_pgvector_installation;
