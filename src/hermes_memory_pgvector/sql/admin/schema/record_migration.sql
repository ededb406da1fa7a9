-- records a migration as applied
INSERT INTO hermes_pgvector_migrations (version, name, sha256) VALUES (%s, %s, %s)
