-- close --
-- Waits for what is being written, and holds back what comes next until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-gate', 7));


-- enter --
-- Lets a writer in, unless something is being forgotten or renamed at this moment.
--
-- A statement of its own: what is read in the same one would be from before the wait.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-gate', 7));


-- forgotten --
-- Which of these marks are set, and until when is what they stand for forgotten?
SELECT mark, max(until) FROM forgotten WHERE mark = ANY (%(marks)s::bytea[]) GROUP BY mark;


-- insert_marks --
-- Sets marks. None reaches into the future: what is said from now on is new.
INSERT INTO forgotten (mark, until, receipt)
SELECT given.mark, least(given.until, now()), %(receipt)s::bigint
FROM unnest(%(marks)s::bytea[], %(untils)s::timestamptz[]) AS given (mark, until)
ON CONFLICT (mark, until) DO NOTHING;


-- last_receipt --
-- The highest number of a receipt that a mark has.
SELECT coalesce(max(receipt), 0) FROM forgotten;


-- named --
-- The marks of all receipts but some.
SELECT mark, until, receipt FROM forgotten WHERE receipt <> ALL (%(others)s::bigint[]) ORDER BY receipt;


-- of_receipt --
-- The marks of a receipt.
SELECT mark, until FROM forgotten WHERE receipt = %(receipt)s::bigint;


-- installation --
-- What are marks made with, and where does the installation move to, null while it is here?
SELECT key, moved_to FROM hermes_pgvector_installation;


-- open --
-- Which themes have other names now, and until when is anything forgotten, null if nothing is?
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias), (SELECT max(until) FROM forgotten);
