-- the version of pgvector in this database, and the one this server could install
SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'
