-- delete --
-- Removes these entries of a theme, and their vectors with them.
DELETE FROM memory_entries WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- entries --
-- The entries of a theme and target.
SELECT id, content, created_at, updated_at, metadata, hidden_by, origin, home_id, untrusted, homes
FROM memory_entries
WHERE agent_identity = %(theme)s AND target = %(target)s;


-- held_elsewhere --
-- Which of these entries does their home hold in other themes, too, because they stood in its file? With each its number,
-- the other theme and the place of the newest operation there.
SELECT given.number, entry.agent_identity, (
           SELECT max(operation.order_us) FROM memory_operations AS operation
           WHERE operation.agent_identity = entry.agent_identity AND operation.target = %(target)s)
FROM unnest(%(home_ids)s::text[], %(contents)s::text[]) WITH ORDINALITY AS given (home_id, content, number)
JOIN memory_entries AS entry
  ON entry.content = given.content AND entry.homes -> given.home_id ->> 'o' = 'file'
WHERE entry.homes ?| %(home_ids)s::text[] AND entry.target = %(target)s AND entry.agent_identity <> %(theme)s
ORDER BY given.number, entry.agent_identity;


-- insert --
-- Adds entries to a theme, the hidden ones without words to find them by; answers the id of each. One that gets other
-- words keeps the id it had.
INSERT INTO memory_entries (agent_identity, id, target, content, created_at, updated_at, metadata, homes, hidden_by,
                            origin, home_id, untrusted)
SELECT %(theme)s, coalesce(new.id, nextval('memory_entries_id_seq')), %(target)s, new.content, new.created_at, new.updated_at,
       new.metadata::jsonb, new.homes::jsonb,
       coalesce(new.hidden_by, (
           SELECT min(rule.id) FROM hidden AS rule
           WHERE rule.is_open AND rule.undone_at IS NULL
             AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, %(theme)s,
                                  new.metadata::jsonb ->> 'session_id',
                                  hermes_origin_of_memory(new.origin, new.metadata::jsonb),
                                  new.untrusted, new.metadata::jsonb, new.updated_at))), new.origin, nullif(new.home_id, ''), new.untrusted
FROM unnest(%(ids)s::bigint[], %(contents)s::text[], %(created)s::timestamptz[], %(updated)s::timestamptz[],
            %(metadata)s::text[], %(holders)s::text[], %(hidden)s::bigint[], %(origins)s::text[],
            %(home_ids)s::text[], %(untrusted)s::boolean[])
     WITH ORDINALITY AS new (id, content, created_at, updated_at, metadata, homes, hidden_by, origin, home_id, untrusted,
                             place)
ORDER BY new.place
RETURNING id;


-- insert_operations --
-- Records memory operations of one theme once; answers which of them were new.
INSERT INTO memory_operations
    (agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
     written_by, untrusted)
SELECT %(theme)s, %(target)s, given.order_us, given.writer, given.seq, given.part, given.action, given.content, given.old_text,
       given.previous, given.home_id, given.origin, given.at, given.metadata::jsonb, given.written_by, given.untrusted
FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[], %(actions)s::text[],
            %(contents)s::text[], %(old_texts)s::text[], %(previous)s::text[], %(home_ids)s::text[], %(origins)s::text[],
            %(ats)s::timestamptz[], %(metadata)s::text[], %(written_by)s::text[], %(untrusted)s::boolean[])
     AS given (order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
               written_by, untrusted)
ON CONFLICT DO NOTHING
RETURNING writer, seq, part;


-- distrust_entries --
-- Marks the entries whose words are those that these calls of the memory tool wrote.
--
-- theme; session_id; calls; at: when the turn ended; tools: a JSON object that joins the metadata.
UPDATE memory_entries SET untrusted = true, metadata = metadata || %(tools)s::jsonb
WHERE agent_identity = %(theme)s AND metadata ->> 'session_id' = %(session_id)s
  AND metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND updated_at <= %(at)s::timestamptz;


-- distrust_read --
-- Marks entries with these numbers.
--
-- theme; ids; tools: a JSON object that joins the metadata.
UPDATE memory_entries SET untrusted = true, metadata = metadata || coalesce(%(tools)s::jsonb, '{}')
WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- read_first --
-- Entries whose words these calls of the memory tool wrote, and that a process read in the file before it knew of the call.
--
-- theme; session_id; calls; at: when the turn ended.
SELECT entry.id FROM memory_operations AS said
JOIN memory_entries AS entry ON entry.agent_identity = said.agent_identity AND entry.target = said.target
                            AND entry.content = said.content AND entry.origin = 'file' AND entry.created_at >= said.at
WHERE said.agent_identity = %(theme)s AND said.metadata ->> 'session_id' = %(session_id)s
  AND said.metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND said.action <> 'remove'
  AND said.at <= %(at)s::timestamptz;


-- distrust_operations --
-- Marks what these calls of the memory tool wrote, where it is kept as operations.
--
-- theme; session_id; calls; at: when the turn ended; tools: a JSON object that joins the metadata.
UPDATE memory_operations SET untrusted = true, metadata = metadata || %(tools)s::jsonb
WHERE agent_identity = %(theme)s AND metadata ->> 'session_id' = %(session_id)s
  AND metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND action <> 'remove'
  AND at <= %(at)s::timestamptz;


-- last_operation --
-- The newest operation on this theme's memories so far.
SELECT order_us, writer, seq, part FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us DESC, writer DESC, seq DESC, part DESC LIMIT 1;


-- lock --
-- One writer at a time per theme and target, until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-memory:' || %(target)s || ':' || %(theme)s, 7));


-- lock_homes --
-- Holds these homes' mirrors back until the transaction ends: announcements of one home may go on side by side.
SELECT pg_advisory_xact_lock_shared(hashtextextended('hermes-home:' || home.id, 7))
FROM unnest(%(home_ids)s::text[]) AS home (id);


-- note --
-- Notes who holds these entries of a theme, and what else is known of them.
UPDATE memory_entries AS entry SET homes = new.homes::jsonb, metadata = new.metadata::jsonb
FROM unnest(%(ids)s::bigint[], %(holders)s::text[], %(metadata)s::text[]) AS new (id, homes, metadata)
WHERE entry.agent_identity = %(theme)s AND entry.id = new.id;
