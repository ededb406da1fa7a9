-- Whether nobody but these homes has ever written to this database; a login of single themes cannot know.
SELECT NOT EXISTS (SELECT FROM journal_writers WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]))
   AND NOT EXISTS (SELECT FROM journals_ended WHERE home_id <> '' AND home_id <> ALL (%(homes)s::text[]))
   AND NOT EXISTS (SELECT FROM login_grants WHERE login = session_user);
