-- homes that have written here within a week, except these
SELECT DISTINCT home_id FROM journal_writers
WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]) AND updated_at > now() - interval '7 days' ORDER BY 1
