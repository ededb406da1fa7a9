-- gives what belongs to these homes to a login: journals, files, dead letters, what was heard of them; returns how many rows
WITH writers AS (UPDATE journal_writers SET login = %(login)s WHERE home_id = ANY (%(homes)s::text[]) RETURNING writer),
ended AS (UPDATE journals_ended SET login = %(login)s WHERE home_id = ANY (%(homes)s::text[]) RETURNING writers),
processes AS (UPDATE agent_processes SET login = %(login)s WHERE home_id = ANY (%(homes)s::text[]) RETURNING 1),
past AS (UPDATE past_processes SET login = %(login)s WHERE home_id = ANY (%(homes)s::text[]) RETURNING 1),
files AS (UPDATE memory_files SET login = %(login)s WHERE home_id = ANY (%(homes)s::text[]) RETURNING 1),
letters AS (UPDATE dead_letters SET login = %(login)s
            WHERE writer IN (SELECT w.writer FROM writers AS w UNION SELECT unnest(e.writers) FROM ended AS e) RETURNING 1)
SELECT (SELECT count(*) FROM writers) + (SELECT count(*) FROM ended) + (SELECT count(*) FROM files) + (SELECT count(*) FROM letters)
