-- which installation this is, where it has moved to, and which one is being copied to here
SELECT id::text, moved_to, filled_from::text FROM hermes_pgvector_installation
