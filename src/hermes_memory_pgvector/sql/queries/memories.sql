-- all_operations --
-- Every operation on this theme's memories, in order.
SELECT order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata, written_by, trust
FROM memory_operations
WHERE agent_identity = %(theme)s AND target = %(target)s
ORDER BY order_us, writer, seq, part;


-- candidates --
-- The theme's entries that these operations could mean: the same content, or content with one of these texts in it.
SELECT entry.id, entry.content, entry.created_at, entry.updated_at, entry.metadata, entry.hidden_by,
       entry.origin, entry.home_id, entry.trust,
       coalesce((SELECT jsonb_object_agg(source.home_id, source.origin) FROM memory_sources AS source
                 WHERE source.agent_identity = %(theme)s AND source.entry_id = entry.id), '{}'::jsonb)
FROM memory_entries AS entry
WHERE entry.agent_identity = %(theme)s AND entry.target = %(target)s
  AND (%(everything)s::boolean
       OR hermes_digest(entry.content) IN (SELECT hermes_digest(given) FROM unnest(%(contents)s::text[]) AS given)
       OR EXISTS (SELECT FROM unnest(%(old_texts)s::text[]) AS old (part) WHERE strpos(entry.content, old.part) > 0));


-- containing --
-- Which entries of a theme contain this text, and who holds each? Only what recall may find: nothing hidden. The
-- shortest first, so that an entry that is the text comes before those that contain it.
--
-- theme, also by a name it had before; targets; text; limit.
SELECT entry.target, entry.content,
       coalesce((SELECT array_agg(source.home_id ORDER BY source.home_id) FROM memory_sources AS source
                 WHERE source.agent_identity = entry.agent_identity AND source.entry_id = entry.id), '{}')
FROM memory_entries AS entry
WHERE entry.agent_identity = coalesce((SELECT alias.new FROM theme_aliases AS alias WHERE alias.old = %(theme)s::text), %(theme)s::text)
  AND entry.target = ANY (%(targets)s::text[]) AND strpos(entry.content, %(text)s::text) > 0 AND entry.hidden_by IS NULL
ORDER BY length(entry.content), entry.target
LIMIT %(limit)s::integer;


-- delete --
-- Removes these entries of a theme.
DELETE FROM memory_entries WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- drop_sources --
-- Notes which homes no longer hold which entries of a theme.
DELETE FROM memory_sources AS source
USING unnest(%(ids)s::bigint[], %(home_ids)s::text[]) AS dropped (id, home_id)
WHERE source.agent_identity = %(theme)s AND source.entry_id = dropped.id AND source.home_id = dropped.home_id;


-- drop_vectors --
-- Drops the vectors of an entry whose content has changed.
DELETE FROM {memory_vectors} WHERE agent_identity = %(theme)s AND id = %(id)s;


-- guessed_elsewhere --
-- Which of these entries were put into other themes from their home's file at the moment the theme that wrote them
-- announced them? With each its number, the other theme and the place of the newest operation there.
WITH given AS MATERIALIZED (
    SELECT told.number, told.home_id, hermes_digest(told.content) AS digest, told.at - interval '5 seconds' AS earliest
    FROM unnest(%(home_ids)s::text[], %(contents)s::text[], %(ats)s::timestamptz[])
         WITH ORDINALITY AS told (home_id, content, at, number)
), guessed AS MATERIALIZED (
    SELECT source.home_id, source.agent_identity, source.since, hermes_digest(entry.content) AS digest
    FROM memory_sources AS source
    JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
    WHERE source.home_id = ANY (%(home_ids)s::text[]) AND source.origin = 'file' AND source.agent_identity <> %(theme)s
      AND source.since >= (SELECT min(given.earliest) FROM given) AND entry.target = %(target)s
)
SELECT given.number, guessed.agent_identity, (
           SELECT max(operation.order_us) FROM memory_operations AS operation
           WHERE operation.agent_identity = guessed.agent_identity AND operation.target = %(target)s)
FROM given
JOIN guessed ON guessed.digest = given.digest AND guessed.home_id = given.home_id AND guessed.since >= given.earliest
ORDER BY given.number, guessed.agent_identity;


-- insert --
-- Adds entries to a theme, the hidden ones without words to find them by; answers the id of each.
INSERT INTO memory_entries (agent_identity, target, content, created_at, updated_at, metadata, lexemes, hidden_by, origin,
                            home_id, trust)
SELECT %(theme)s, %(target)s, new.content, new.created_at, new.updated_at, new.metadata::jsonb,
       CASE WHEN new.hidden_by IS NULL AND held.by_rule IS NULL THEN new.lexemes ELSE '' END::tsvector,
       coalesce(new.hidden_by, held.by_rule), new.origin, nullif(new.home_id, ''), new.trust
FROM unnest(%(contents)s::text[], %(created)s::timestamptz[], %(updated)s::timestamptz[], %(metadata)s::text[],
            %(lexemes)s::text[], %(hidden)s::bigint[], %(origins)s::text[], %(home_ids)s::text[], %(trusts)s::text[])
     WITH ORDINALITY AS new (content, created_at, updated_at, metadata, lexemes, hidden_by, origin, home_id, trust, place)
CROSS JOIN LATERAL (
    SELECT min(rule.id) AS by_rule FROM hidden AS rule
    WHERE rule.is_open AND rule.undone_at IS NULL
      AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, %(theme)s,
                           new.metadata::jsonb ->> 'session_id', hermes_origin_of_memory(new.origin, new.metadata::jsonb),
                           new.trust, new.metadata::jsonb, new.updated_at)) AS held
ORDER BY new.place
RETURNING content, id;


-- insert_operations --
-- Records memory operations of one theme once; answers which of them were new.
INSERT INTO memory_operations
    (agent_identity, target, order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
     written_by, trust)
SELECT %(theme)s, %(target)s, given.order_us, given.writer, given.seq, given.part, given.action, given.content, given.old_text,
       given.previous, given.home_id, given.origin, given.at, given.metadata::jsonb, given.written_by, given.trust
FROM unnest(%(orders)s::bigint[], %(writers)s::text[], %(seqs)s::bigint[], %(parts)s::integer[], %(actions)s::text[],
            %(contents)s::text[], %(old_texts)s::text[], %(previous)s::text[], %(home_ids)s::text[], %(origins)s::text[],
            %(ats)s::timestamptz[], %(metadata)s::text[], %(written_by)s::text[], %(trusts)s::text[])
     AS given (order_us, writer, seq, part, action, content, old_text, previous, home_id, origin, at, metadata,
               written_by, trust)
ON CONFLICT DO NOTHING
RETURNING writer, seq, part;


-- judge_entries --
-- Notes how far to trust entries whose words are those that these calls of the memory tool wrote.
--
-- theme; session_id; calls; at: when the turn ended; trust; tools: a JSON object that joins the metadata.
UPDATE memory_entries SET trust = %(trust)s, metadata = metadata || %(tools)s::jsonb
WHERE agent_identity = %(theme)s AND metadata ->> 'session_id' = %(session_id)s
  AND metadata ->> 'tool_call_id' = ANY (%(calls)s::text[]) AND updated_at <= %(at)s::timestamptz;


-- judge_operations --
-- Notes how far to trust what these calls of the memory tool wrote, where it is kept as operations.
--
-- theme; session_id; calls; at: when the turn ended; trust; tools: a JSON object that joins the metadata.
UPDATE memory_operations SET trust = %(trust)s, metadata = metadata || %(tools)s::jsonb
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


-- set_sources --
-- Notes which homes hold which entries of a theme.
INSERT INTO memory_sources (agent_identity, entry_id, home_id, origin, since)
SELECT %(theme)s, held.id, held.home_id, held.origin, held.since
FROM unnest(%(ids)s::bigint[], %(home_ids)s::text[], %(origins)s::text[], %(sinces)s::timestamptz[])
     AS held (id, home_id, origin, since)
ON CONFLICT (agent_identity, entry_id, home_id) DO UPDATE SET origin = excluded.origin, since = excluded.since;


-- update --
-- Gives an entry its new content; a hidden one stays so, and one that an open rule is about becomes so.
UPDATE memory_entries AS entry
SET content = %(content)s, updated_at = %(updated_at)s::timestamptz, metadata = %(metadata)s::jsonb,
    origin = %(origin)s::text, home_id = nullif(%(home_id)s, ''), trust = %(trust)s::text,
    hidden_by = coalesce(entry.hidden_by, held.by_rule),
    lexemes = CASE WHEN entry.hidden_by IS NULL AND held.by_rule IS NULL THEN %(lexemes)s::tsvector ELSE ''::tsvector END
FROM (SELECT min(rule.id) AS by_rule FROM hidden AS rule
      WHERE rule.is_open AND rule.undone_at IS NULL
        AND hermes_is_within(rule.theme, rule.session_id, rule.origin, rule.since, rule.until, %(theme)s,
                             %(metadata)s::jsonb ->> 'session_id', hermes_origin_of_memory(%(origin)s::text, %(metadata)s::jsonb),
                             %(trust)s::text, %(metadata)s::jsonb, %(updated_at)s::timestamptz)) AS held
WHERE entry.agent_identity = %(theme)s AND entry.id = %(id)s;
