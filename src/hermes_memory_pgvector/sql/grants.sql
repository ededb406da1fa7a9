-- What the runtime role may do: read and write rows, nothing else. It owns nothing and can create nothing here.
DO $$ BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), {role_literal});
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), {role_literal});
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    memory_entries, conversations, memory_sources, memory_operations, memory_files, delegations, journal_writers, pending_vectors,
    dead_letters TO {role};
GRANT USAGE ON SEQUENCE memory_entries_id_seq, conversations_id_seq, delegations_id_seq, dead_letters_id_seq TO {role};
GRANT SELECT ON hermes_pgvector_migrations, embedding_models, lexeme_statistics TO {role};
-- What runs with the owner's rights is for this role, not for everybody who can connect.
REVOKE EXECUTE ON FUNCTION hermes_refresh_statistics(), hermes_raise_candidates(integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hermes_refresh_statistics(), hermes_raise_candidates(integer, integer) TO {role};
