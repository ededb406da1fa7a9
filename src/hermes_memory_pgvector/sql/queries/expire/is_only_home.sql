-- Whether nobody but these homes has ever written to this database.
SELECT NOT EXISTS (SELECT FROM journal_writers WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]))
   AND NOT EXISTS (SELECT FROM journals_ended WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]));
