-- held_memories --
-- Which of these memories are stored? Arrays of equal length: themes, targets, contents.
SELECT asked.place::integer, memory.id
FROM unnest(%(themes)s::text[], %(targets)s::text[], %(contents)s::text[])
     WITH ORDINALITY AS asked (theme, target, content, place)
JOIN memory_entries AS memory
  ON memory.agent_identity = asked.theme AND memory.target = asked.target
 AND hermes_digest(memory.content) = hermes_digest(asked.content);


-- held_words --
-- The stored turns that say the words of each of these, and whether the user has taken them back.
--
-- Arrays of equal length: themes, session_ids, digests (hex), roles, masked (the content where secrets in it are masked,
-- else null), are_original (whether the digest is that of the words before they were masked). A turn whose secrets were
-- masked comes back from an export without the words of its digest: it is known by what is stored of it.
SELECT held.place::integer, held.id, coalesce(held.ordinal, 0),
       (extract(epoch FROM held.ts) * 1000000)::bigint,
       EXISTS (SELECT FROM hidden AS rule WHERE rule.id = held.hidden_by AND rule.rule = 'undone')
FROM (
    SELECT asked.place, turn.id, turn.ordinal, turn.ts, turn.hidden_by
    FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[])
         WITH ORDINALITY AS asked (theme, session_id, digest, place)
    JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
     AND turn.digest = decode(asked.digest, 'hex')
    UNION ALL
    SELECT asked.place, turn.id, turn.ordinal, turn.ts, turn.hidden_by
    FROM unnest(%(themes)s::text[], %(session_ids)s::text[], %(digests)s::text[], %(roles)s::text[], %(masked)s::text[],
                %(are_original)s::boolean[])
         WITH ORDINALITY AS asked (theme, session_id, digest, role, content, is_original, place)
    JOIN conversations AS turn ON turn.agent_identity = asked.theme AND turn.session_id = asked.session_id
     AND turn.metadata ? 'redacted' AND turn.role = asked.role AND turn.content = asked.content
     AND turn.digest <> decode(asked.digest, 'hex')
     AND (NOT asked.is_original OR turn.digest = hermes_turn_digest(turn.role, turn.content))
    WHERE asked.content IS NOT NULL
) AS held;


-- holding_themes --
-- Which of these themes hold turns of a session with these words? digests: hex.
SELECT DISTINCT turn.agent_identity
FROM conversations AS turn
WHERE turn.agent_identity = ANY(%(themes)s::text[]) AND turn.session_id = %(session_id)s::text
  AND encode(turn.digest, 'hex') = ANY(%(digests)s::text[]);


-- published_rows --
-- Every memory, then every turn, of a database of the published package: of all themes, or of one.
SELECT 'memory', agent_identity, target, NULL::text, NULL::text, content, created_at, metadata, NULL::text, NULL::timestamptz
FROM memory_entries WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
UNION ALL
SELECT 'turn', agent_identity, role, session_id, NULL, content, ts, metadata, NULL, NULL
FROM conversations WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text
ORDER BY 2, 1, 4, 7;


-- published_count --
-- How many rows are those of published_rows?
SELECT (SELECT count(*) FROM memory_entries WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text)
     + (SELECT count(*) FROM conversations WHERE %(theme)s::text IS NULL OR agent_identity = %(theme)s::text);


-- row_count --
-- How many rows are those of rows?
SELECT count(*)
FROM hermes_rows AS row
WHERE (%(theme)s::text IS NULL OR row.theme = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR row.at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR row.at < %(until)s::timestamptz)
  AND (%(hidden)s::boolean OR row.hidden_by IS NULL);


-- rows --
-- Every memory, then every turn in the order in which its session went, theme by theme.
--
-- theme, since, until: null for no such limit; hidden: whether those come along that recall leaves out.
SELECT row.kind, row.theme, row.whose, row.session_id,
       CASE WHEN row.kind = 'turn' THEN (SELECT turn.parent_session_id FROM conversations AS turn
                                         WHERE turn.agent_identity = row.theme AND turn.id = row.id) END AS parent,
       row.content, row.at, row.metadata, row.untrusted,
       (SELECT rule.at FROM hidden AS rule WHERE rule.id = row.hidden_by) AS hidden
FROM hermes_rows AS row
WHERE (%(theme)s::text IS NULL OR row.theme = %(theme)s::text)
  AND (%(since)s::timestamptz IS NULL OR row.at >= %(since)s::timestamptz)
  AND (%(until)s::timestamptz IS NULL OR row.at < %(until)s::timestamptz)
  AND (%(hidden)s::boolean OR row.hidden_by IS NULL)
ORDER BY row.theme COLLATE "C", row.kind, row.session_id COLLATE "C", row.at, row.id;


-- tables --
-- Does this database have our view of all rows, and tables of memories and turns, whoever made them?
SELECT to_regclass('hermes_rows') IS NOT NULL,
       to_regclass('memory_entries') IS NOT NULL AND to_regclass('conversations') IS NOT NULL;
