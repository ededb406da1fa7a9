-- Which of these memories are stored?
--
-- themes, targets, contents: three arrays, one element per memory.
SELECT asked.place::integer, memory.id
FROM unnest(%(themes)s::text[], %(targets)s::text[], %(contents)s::text[])
     WITH ORDINALITY AS asked (theme, target, content, place)
JOIN memory_entries AS memory
  ON memory.agent_identity = asked.theme AND memory.target = asked.target
 AND hermes_digest(memory.content) = hermes_digest(asked.content);
