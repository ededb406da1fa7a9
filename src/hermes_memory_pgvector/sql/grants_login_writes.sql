-- What a login that may write needs besides.
GRANT INSERT, UPDATE, DELETE ON
    memory_entries, conversations, memory_sources, memory_operations, memory_files, delegations, journal_writers, journals_ended,
    pending_vectors, dead_letters, recall_log TO {role};
GRANT USAGE ON SEQUENCE memory_entries_id_seq, conversations_id_seq, delegations_id_seq, dead_letters_id_seq,
    memory_operations_id_seq TO {role};
