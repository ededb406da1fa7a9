-- Which installation is this?
SELECT id::text FROM hermes_pgvector_installation;
