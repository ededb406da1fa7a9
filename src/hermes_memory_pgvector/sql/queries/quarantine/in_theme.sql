-- How many turns and memories of a theme each quarantine holds.
SELECT held.quarantine_id, count(*) FILTER (WHERE held.is_turn), count(*) FILTER (WHERE NOT held.is_turn)
FROM (SELECT quarantine_id, true AS is_turn FROM quarantined_turns WHERE agent_identity = %(theme)s::text
      UNION ALL
      SELECT quarantine_id, false FROM quarantined_memories WHERE agent_identity = %(theme)s::text) AS held
GROUP BY held.quarantine_id;
