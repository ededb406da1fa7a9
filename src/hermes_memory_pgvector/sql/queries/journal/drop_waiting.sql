-- Deletes records that have waited, in the transaction that stores them.
DELETE FROM dead_letters WHERE id = ANY (%(ids)s::bigint[]);
