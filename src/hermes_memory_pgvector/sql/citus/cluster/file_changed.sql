-- Whether the file of one of these homes has changed since, or shortly before, it announced something: only then may the
-- mirror have put that into another theme, and every shard has to be asked. Clocks may differ by some minutes.
SELECT EXISTS (
    SELECT FROM memory_files AS file
    JOIN unnest(%(home_ids)s::text[], %(ats)s::timestamptz[]) AS told (home_id, at) ON told.home_id = file.home_id
    WHERE file.updated_at >= told.at - interval '10 minutes');
