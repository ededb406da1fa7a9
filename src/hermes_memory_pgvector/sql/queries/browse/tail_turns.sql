-- Turns that were stored lately: ids above a number, in the themes whose rows were counted since a number.
--
-- theme: null for all; after_line: of theme_growth; after_id.
SELECT turn.agent_identity, turn.id, turn.ts, turn.session_id, turn.role, turn.content, turn.muted_at,
       hermes_origin_of_turn(turn.origin, turn.role), turn.trust
FROM (SELECT DISTINCT agent_identity FROM theme_growth
      WHERE id > %(after_line)s::bigint AND (%(theme)s::text IS NULL OR agent_identity = %(theme)s::text)) AS theme
JOIN conversations AS turn ON turn.agent_identity = theme.agent_identity AND turn.id > %(after_id)s::bigint
ORDER BY turn.id;
