-- How far has this journal arrived? Also the mutex between two processes that drain it.
SELECT seq FROM journal_writers WHERE writer = %(writer)s FOR UPDATE;
