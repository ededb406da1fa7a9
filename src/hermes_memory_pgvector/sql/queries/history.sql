-- drop --
-- Deletes these operations on a theme's memories.
DELETE FROM memory_operations WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- due --
-- Themes and targets with operations on memories from before a time that nothing depends on any more.
--
-- before; limit. What is still needed is a plain add of an entry that is there.
SELECT operation.agent_identity, operation.target
FROM memory_operations AS operation
WHERE operation.at < %(before)s::timestamptz
  AND NOT (operation.action = 'add' AND EXISTS (
      SELECT FROM memory_entries AS entry
      WHERE entry.agent_identity = operation.agent_identity AND entry.target = operation.target
        AND hermes_digest(entry.content) = hermes_digest(operation.content)))
GROUP BY 1, 2
-- Each is locked in turn: the order is that of every other writer, whatever the database's collation.
ORDER BY operation.agent_identity COLLATE "C", operation.target COLLATE "C" LIMIT %(limit)s::integer;


-- find --
-- The theme and target of the operation with this number.
SELECT agent_identity, target FROM memory_operations
WHERE id = %(id)s::bigint AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text);


-- flatten --
-- Makes these operations plain adds of what they wrote: what was there before them is no longer told.
UPDATE memory_operations SET action = 'add', old_text = '', previous = NULL
WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- heard_of --
-- Those of these homes that somebody has heard of since a time.
SELECT asked.home_id FROM unnest(%(home_ids)s::text[]) AS asked (home_id)
WHERE greatest((SELECT max(file.compared_at) FROM memory_files AS file WHERE file.home_id = asked.home_id),
               (SELECT max(process.seen_at) FROM processes AS process WHERE process.home_id = asked.home_id))
      > %(since)s::timestamptz
ORDER BY asked.home_id;


-- list --
-- Operations on memories, newest first, between two numbers.
--
-- theme, since, until, after_id, before_id, limit: null for all.
SELECT agent_identity, id, target, action, content, old_text, previous, home_id, origin, at, metadata, written_by, untrusted,
       order_us, writer, seq, part
FROM memory_operations
WHERE (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR at < %(until)s::timestamptz)
  AND (%(after_id)s::bigint IS NULL OR id > %(after_id)s::bigint)
  AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s::bigint)
ORDER BY id DESC LIMIT %(limit)s::integer;


-- of_theme --
-- Every operation on a theme's memories of one target, in order.
SELECT agent_identity, id, target, action, content, old_text, previous, home_id, origin, at, metadata, written_by, untrusted,
       order_us, writer, seq, part
FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us, writer, seq, part;


-- our_turn --
-- Whether nobody else is shortening the history, until the transaction ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('hermes-history', 7));
