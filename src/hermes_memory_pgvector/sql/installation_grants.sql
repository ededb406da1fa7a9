-- What the runtime role may do with the tables of the whole installation. It can create nothing here.
DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {role_literal});
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_literal});
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON processes, memory_files, theme_places TO {role};
GRANT USAGE ON SEQUENCE receipts_id_seq, audit_log_id_seq TO {role};
GRANT SELECT ON hermes_pgvector_migrations, hermes_pgvector_installation TO {role};
-- What was done stays: rows are added and read, never changed or deleted, and nobody says when or as whom but Postgres.
GRANT SELECT, INSERT (actor, home_id, action, theme, subject, counts) ON audit_log TO {role};
-- Receipts are added, and nobody but the owner takes them away again.
GRANT SELECT, INSERT ON receipts TO {role};
GRANT SELECT ON hermes_processes, hermes_metrics TO {role};
