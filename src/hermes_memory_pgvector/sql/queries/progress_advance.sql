-- Notes how far this journal has arrived.
UPDATE journal_writers SET seq = %(seq)s, updated_at = now() WHERE writer = %(writer)s;
