-- Moving to another database: where the installation went, and which one is just being copied to here. Both are null
-- while this database is the one in use.
ALTER TABLE hermes_pgvector_installation ADD COLUMN moved_to text;
ALTER TABLE hermes_pgvector_installation ADD COLUMN filled_from uuid;
