-- The views are for looking, where they show what their reader may see.
DO $$ BEGIN
    IF current_setting('server_version_num')::integer >= 150000 THEN
        GRANT SELECT ON memory_entries_embedded, conversations_embedded TO {role};
    END IF;
END $$;
