-- What people and scripts read by hand; the package's own commands read the same. Documented and stable: columns are only
-- added, at the end. docs/reference/sql.md tells of each.
--
-- Made anew by every migrate. Columns that nobody asks for are not computed.

-- Memories and turns side by side. Whoever names no theme reads every row: for the newest of all themes, take the newest
-- of each (hermes_theme_names CROSS JOIN LATERAL).
CREATE OR REPLACE VIEW hermes_rows AS
SELECT entry.id, 'memory'::text AS kind, entry.agent_identity AS theme, entry.updated_at AS at, entry.target AS whose,
       NULL::text AS session_id, entry.content, hermes_origin_of_memory(entry.origin, entry.metadata) AS origin, entry.untrusted,
       entry.hidden_by, entry.home_id, entry.metadata
FROM memory_entries AS entry
UNION ALL
SELECT turn.id, 'turn'::text, turn.agent_identity, turn.ts, turn.role, turn.session_id, turn.content,
       hermes_origin_of_turn(turn.origin, turn.role), turn.untrusted,
       turn.hidden_by, turn.home_id, turn.metadata
FROM conversations AS turn;

-- The names of the themes that hold anything, found by leaps through an index.
CREATE OR REPLACE VIEW hermes_theme_names AS
WITH RECURSIVE speaking (theme) AS (
    (SELECT turn.agent_identity FROM conversations AS turn ORDER BY turn.agent_identity LIMIT 1)
    UNION ALL
    SELECT (SELECT turn.agent_identity FROM conversations AS turn
            WHERE turn.agent_identity > speaking.theme ORDER BY turn.agent_identity LIMIT 1)
    FROM speaking WHERE speaking.theme IS NOT NULL
), knowing (theme) AS (
    (SELECT entry.agent_identity FROM memory_entries AS entry ORDER BY entry.agent_identity LIMIT 1)
    UNION ALL
    SELECT (SELECT entry.agent_identity FROM memory_entries AS entry
            WHERE entry.agent_identity > knowing.theme ORDER BY entry.agent_identity LIMIT 1)
    FROM knowing WHERE knowing.theme IS NOT NULL
)
SELECT speaking.theme FROM speaking WHERE speaking.theme IS NOT NULL
UNION
SELECT knowing.theme FROM knowing WHERE knowing.theme IS NOT NULL;

-- How much each of these themes holds.
CREATE OR REPLACE VIEW hermes_themes AS
SELECT found.theme,
       (SELECT count(*) FROM memory_entries AS entry WHERE entry.agent_identity = found.theme) AS memories,
       (SELECT count(*) FROM conversations AS turn WHERE turn.agent_identity = found.theme) AS turns,
       (SELECT count(*) FROM hermes_rows AS row WHERE row.theme = found.theme AND row.hidden_by IS NOT NULL) AS hidden,
       (SELECT count(*) FROM hermes_rows AS row
        WHERE row.theme = found.theme AND row.at >= date_trunc('day', now(), 'UTC')) AS new_today,
       (SELECT count(*) FROM hermes_rows AS row
        WHERE row.theme = found.theme AND row.at >= date_trunc('day', now(), 'UTC') - interval '6 days') AS new_this_week,
       (SELECT max(row.at) FROM hermes_rows AS row WHERE row.theme = found.theme) AS last_write,
       (SELECT log.at FROM recall_log AS log WHERE log.agent_identity = found.theme ORDER BY log.at DESC LIMIT 1) AS last_recall,
       hermes_is_private(found.theme) AS is_private
FROM hermes_theme_names AS found;

-- Sessions: each stands where its last turn stands.
CREATE OR REPLACE VIEW hermes_sessions AS
SELECT last.session_id, last.agent_identity AS theme,
       (SELECT count(*) FROM conversations AS turn
        WHERE turn.agent_identity = last.agent_identity AND turn.session_id = last.session_id) AS turns,
       (SELECT min(turn.ts) FROM conversations AS turn
        WHERE turn.agent_identity = last.agent_identity AND turn.session_id = last.session_id) AS first_at,
       last.ts AS last_at,
       (SELECT max(turn.parent_session_id) FROM conversations AS turn
        WHERE turn.agent_identity = last.agent_identity AND turn.session_id = last.session_id) AS parent_session_id,
       (SELECT left(turn.content, 120) FROM conversations AS turn
        WHERE turn.agent_identity = last.agent_identity AND turn.session_id = last.session_id
        ORDER BY turn.role <> 'user', turn.ts, turn.id LIMIT 1) AS begins_with,
       last.id AS last_id
FROM conversations AS last
WHERE last.id = (SELECT later.id FROM conversations AS later
                 WHERE later.agent_identity = last.agent_identity AND later.session_id = last.session_id
                 ORDER BY later.ts DESC, later.id DESC LIMIT 1);

-- How memories changed; `undo e17` takes event 17 back.
CREATE OR REPLACE VIEW hermes_events AS
SELECT operation.id, operation.agent_identity AS theme, operation.at, operation.action, operation.target AS whose,
       nullif(operation.content, '') AS content, nullif(coalesce(operation.previous, operation.old_text), '') AS former,
       CASE WHEN operation.home_id = 'mcp' THEN 'mcp'
            WHEN operation.written_by = 'operator' THEN coalesce(operation.metadata ->> 'command', operation.origin)
            ELSE operation.origin END AS written_by,
       nullif(operation.metadata ->> 'session_id', '') AS session_id, operation.home_id, operation.metadata
FROM memory_operations AS operation;
