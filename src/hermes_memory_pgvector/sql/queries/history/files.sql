-- MEMORY.md or USER.md of these homes, as last compared; not of homes that nobody has heard of for 30 days.
SELECT file.home_id, file.entries FROM memory_files AS file
WHERE file.target = %(target)s AND file.home_id = ANY (%(home_ids)s::text[])
  AND greatest(file.updated_at, file.compared_at,
               (SELECT max(writer.updated_at) FROM journal_writers AS writer WHERE writer.home_id = file.home_id),
               (SELECT max(process.seen_at) FROM agent_processes AS process WHERE process.home_id = file.home_id),
               (SELECT max(agent.last_seen) FROM agents AS agent WHERE agent.home_id = file.home_id))
      > now() - interval '30 days';
