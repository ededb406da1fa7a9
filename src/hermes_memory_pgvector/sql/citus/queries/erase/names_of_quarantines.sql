-- Takes the names off quarantines of a forgotten theme or session that hold nothing and will hold nothing.
--
-- theme, session_id: null where it does not matter.
UPDATE quarantines AS made SET theme = NULL, session_id = NULL, is_rule = false
WHERE (made.undone_at IS NOT NULL OR made.until IS NOT NULL) AND (made.theme IS NOT NULL OR made.session_id IS NOT NULL)
  AND (%(theme)s::text IS NOT NULL OR %(session_id)s::text IS NOT NULL)
  AND (%(theme)s::text IS NULL OR made.theme = %(theme)s::text
       OR made.theme IS NULL AND made.session_id = %(session_id)s::text)
  AND (%(session_id)s::text IS NULL OR made.session_id = %(session_id)s::text)
  AND made.id NOT IN (SELECT held.quarantine_id FROM quarantined_turns AS held)
  AND made.id NOT IN (SELECT held.quarantine_id FROM quarantined_memories AS held);
