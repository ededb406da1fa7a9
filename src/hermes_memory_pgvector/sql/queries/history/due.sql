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
