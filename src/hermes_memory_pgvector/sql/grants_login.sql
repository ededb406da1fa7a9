-- What a login that was granted single themes may do; which rows, the policies say. It owns nothing, can create nothing
-- here, and reads no statistics of words, no tombstones and no key.
DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {role_literal});
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_literal});
END $$;
GRANT SELECT ON
    memory_entries, conversations, memory_sources, memory_operations, memory_files, delegations, journal_writers, journals_ended,
    pending_vectors, dead_letters, theme_growth, recall_log, theme_aliases, theme_indexes, erasure_receipts, audit_log,
    embedding_models, hermes_pgvector_migrations, hermes_pgvector_installation, login_grants, login_themes, reembedding,
    quarantines, quarantined_turns, quarantined_memories TO {role};
-- Whoever reads is at work, too, and tells so.
GRANT SELECT, INSERT, UPDATE, DELETE ON agent_processes, past_processes TO {role};
GRANT SELECT, INSERT, UPDATE ON agents TO {role};
-- Reading leaves its traces, too.
GRANT INSERT ON recall_log TO {role};
GRANT INSERT (actor, home_id, action, theme, subject, counts) ON audit_log TO {role};
GRANT USAGE ON SEQUENCE recall_log_id_seq, audit_log_id_seq TO {role};
DO $$
DECLARE
    own regprocedure;
BEGIN
    FOR own IN SELECT oid FROM pg_proc
               WHERE prosecdef AND pronamespace = quote_ident(current_schema())::regnamespace
                 AND proname IN ('hermes_login_themes', 'hermes_login_patterns', 'hermes_granted_themes', 'hermes_gate',
                                 'hermes_login_quarantines', 'hermes_trim_recall_log', 'hermes_forgotten', 'hermes_forgotten_parts',
                                 'hermes_claim_themes', 'hermes_look_up_terms', 'hermes_look_up_common',
                                 'hermes_refresh_statistics', 'hermes_term_fractions', 'hermes_raise_candidates') LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', own, {role_literal});
    END LOOP;
END $$;
