-- How far have these journals arrived?
SELECT writer, seq FROM journal_writers WHERE writer = ANY(%(writers)s::text[]);
