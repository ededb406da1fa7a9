-- our tables in this schema, in the order in which writers take them
SELECT c.relname FROM pg_class AS c
WHERE c.relkind = 'r' AND c.relnamespace = quote_ident(current_schema())::regnamespace
  AND (c.relname IN ('memory_entries', 'conversations', 'memory_sources', 'memory_operations', 'memory_files', 'delegations',
                     'journal_writers', 'journals_ended', 'dead_letters', 'pending_vectors', 'theme_growth', 'recall_log',
                     'theme_indexes', 'audit_log', 'erasure_receipts', 'tombstones', 'theme_aliases', 'agent_processes',
                     'past_processes', 'agents')
       OR c.relname ~ '^(turn|memory)_vectors_[0-9]+$')
ORDER BY c.relname <> 'journal_writers', c.relname <> 'conversations', c.relname
