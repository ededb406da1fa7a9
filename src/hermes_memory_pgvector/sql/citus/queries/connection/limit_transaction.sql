-- sets the time limits of the current transaction, in milliseconds, and what it is about, also on the workers
SELECT hermes_say(%(names)s::text[], %(values)s::text[]);
