-- What the runtime role may do with the tables of a bucket: read and write rows, nothing else. It owns nothing.
DO $$ BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_literal});
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory_entries, conversations, hidden, memory_operations, journal_writers, pending_vectors, dead_letters, recall_log,
    theme_aliases TO {role};
GRANT USAGE ON SEQUENCE memory_entries_id_seq, conversations_id_seq, dead_letters_id_seq,
    memory_operations_id_seq, recall_log_id_seq, hidden_id_seq TO {role};
-- Whoever changes the model says how far it has come; beginning, switching and cancelling are the owner's.
-- Whoever embeds first measures the model.
GRANT SELECT, UPDATE (unrelated_mean, unrelated_sd, query_prefix, document_prefix) ON embedding_models TO {role};
-- The views are for looking.
GRANT SELECT ON hermes_rows, hermes_theme_names, hermes_themes, hermes_sessions, hermes_events TO {role};
-- Marks are added, and nobody but the owner takes them away again.
GRANT SELECT, INSERT ON forgotten TO {role};
