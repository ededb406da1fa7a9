-- records what was made, and from what text
INSERT INTO hermes_pgvector_migrations (version, name, sha256) VALUES (%s, %s, %s)
ON CONFLICT (version) DO UPDATE SET name = excluded.name, sha256 = excluded.sha256, applied_at = excluded.applied_at
