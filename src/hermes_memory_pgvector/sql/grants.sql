-- What the runtime role may do: read and write rows, nothing else. It owns nothing and can create nothing here.
DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {role_literal});
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_literal});
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory_entries, conversations, hidden, homes, processes, memory_operations, memory_files, journal_writers, pending_vectors,
    dead_letters, recall_log TO {role};
GRANT USAGE ON SEQUENCE memory_entries_id_seq, conversations_id_seq, dead_letters_id_seq,
    memory_operations_id_seq, recall_log_id_seq, hidden_id_seq, receipts_id_seq TO {role};
GRANT SELECT ON hermes_pgvector_migrations, hermes_pgvector_installation, embedding_models TO {role};
-- Whoever changes the model says how far it has come; beginning, switching and cancelling are the owner's.
-- Whoever embeds first measures the model.
GRANT UPDATE (unrelated_mean, unrelated_sd, query_prefix, document_prefix) ON embedding_models TO {role};
-- What was done stays: rows are added and read, never changed or deleted, and nobody says when or as whom but Postgres.
GRANT SELECT, INSERT (actor, home_id, action, theme, subject, counts) ON audit_log TO {role};
GRANT USAGE ON SEQUENCE audit_log_id_seq TO {role};
-- The views are for looking.
GRANT SELECT ON hermes_rows, hermes_themes, hermes_sessions, hermes_events, hermes_processes, hermes_metrics TO {role};
-- Receipts and marks are added, and nobody but the owner takes them away again.
GRANT SELECT, INSERT ON forgotten, receipts TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON theme_aliases TO {role};
