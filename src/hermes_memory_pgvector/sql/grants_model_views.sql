-- The views are for looking.
GRANT SELECT ON memory_entries_embedded, conversations_embedded TO {role};
