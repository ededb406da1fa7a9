-- columns --
-- the columns of a table that hold anything; generated ones follow from the others
SELECT attname::text FROM pg_attribute
WHERE attrelid = %s::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''


-- delegations --
-- makes turns of the delegations of an earlier installation, which kept no words of them, and numbers equal ones
INSERT INTO conversations (agent_identity, session_id, role, content, ts, metadata, digest, ordinal, origin)
SELECT told.theme, told.session_id, 'tool', told.words, told.ts,
       told.attrs || jsonb_build_object('kind', told.kind, 'delegated_to', coalesce(told.child_session_id, '')),
       hermes_turn_digest('tool', told.words),
       row_number() OVER (PARTITION BY told.theme, told.session_id, told.words ORDER BY told.ts, told.id), 'import'
FROM (SELECT *, coalesce(nullif(lower(btrim(parent_identity)), ''), 'default') AS theme,
             coalesce(parent_session_id, '') AS session_id,
             'Delegated to session ' || coalesce(child_session_id, 'unknown') || '.' AS words
      FROM memory_agent_edges) AS told


-- dimension --
-- the dimension of an earlier installation's vectors; negative when its column has none
SELECT atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attname = 'embedding' AND NOT attisdropped


-- names --
-- a table, its indexes and the sequence of its ids
SELECT relname::text FROM pg_class
WHERE oid = %(table)s::text::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::text::regclass)
   OR oid = to_regclass(pg_get_serial_sequence(%(table)s::text, 'id'))


-- memories --
-- copies the memories of an earlier installation; themes are case-folded, and a row whose folded theme already has it keeps its own
WITH copied AS (
    INSERT INTO memory_entries (agent_identity, id, target, content, created_at, updated_at, metadata, origin)
    SELECT {theme}, id, target, content, created_at, updated_at, metadata, 'import' FROM adopted_memory_entries AS old
    WHERE NOT EXISTS (SELECT FROM memory_entries AS known WHERE known.id = old.id)
    ORDER BY id
    ON CONFLICT DO NOTHING RETURNING 1
) SELECT count(*) FROM copied


-- memory_vectors --
-- copies the vectors of adopted memories, normalised
WITH copied AS (
    INSERT INTO {memory_vectors} (agent_identity, id, ts, target, embedding)
    SELECT entry.agent_identity, entry.id, entry.updated_at, entry.target, l2_normalize(old.embedding)::halfvec({dim})
    FROM adopted_memory_entries AS old JOIN memory_entries AS entry ON entry.id = old.id
    WHERE old.embedding IS NOT NULL AND vector_norm(old.embedding) > 0
    RETURNING 1
) SELECT count(*) FROM copied


-- operations --
-- records each adopted memory as the operation that added it
INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at, metadata, written_by)
SELECT agent_identity, target, (extract(epoch FROM created_at) * 1000000)::bigint, 'adopted', id, 0, 'add', content,
       created_at, metadata, origin
FROM memory_entries


-- other_tables --
-- tables of this schema, except those that are known, that have themes, belong to rows of them, or are named like the known ones
SELECT c.relname::text FROM pg_class AS c
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname <> ALL (%s)
  AND (c.relname LIKE 'memory\_%%' OR c.relname LIKE 'conversation%%'
       OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'agent_identity' AND NOT a.attisdropped)
       OR EXISTS (SELECT FROM pg_constraint AS f
                  WHERE f.conrelid = c.oid AND f.contype = 'f'
                    AND f.confrelid IN (to_regclass('memory_entries'), to_regclass('conversations'))))


-- turn_vectors --
-- copies the vectors of adopted turns, normalised
WITH copied AS (
    INSERT INTO {turn_vectors} (agent_identity, id, ts, content_hash, embedding)
    SELECT turn.agent_identity, turn.id, turn.ts, hermes_content_hash(turn.content),
           l2_normalize(old.embedding)::halfvec({dim})
    FROM adopted_conversations AS old JOIN conversations AS turn ON turn.id = old.id
    WHERE old.embedding IS NOT NULL AND vector_norm(old.embedding) > 0
    RETURNING 1
) SELECT count(*) FROM copied


-- turns --
-- copies the turns of an earlier installation and numbers the occurrences of equal ones
WITH copied AS (
    INSERT INTO conversations
        (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, origin)
    SELECT theme, id, session_id, role, content, ts, metadata, {parent}, hermes_turn_digest(role, content),
           row_number() OVER (PARTITION BY theme, session_id, hermes_turn_digest(role, content) ORDER BY ts, id), 'import'
    FROM (SELECT *, coalesce(nullif(lower(btrim(agent_identity)), ''), 'default') AS theme
          FROM adopted_conversations) AS old
    ORDER BY id
    RETURNING 1
) SELECT count(*) FROM copied
