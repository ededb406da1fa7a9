-- The agents of a theme that is being moved become those of the other one; where a home has worked for both, they are one.
WITH moved AS (
    DELETE FROM agents AS agent WHERE agent.agent_identity = %(theme)s RETURNING *
)
INSERT INTO agents AS known (agent_identity, home_id, first_seen, last_seen, host, kind, version, sessions, turns, memories, recalls)
SELECT %(other)s, moved.home_id, moved.first_seen, moved.last_seen, moved.host, moved.kind, moved.version, moved.sessions,
       moved.turns, moved.memories, moved.recalls
FROM moved
ON CONFLICT (agent_identity, home_id) DO UPDATE SET
    first_seen = least(known.first_seen, excluded.first_seen), last_seen = greatest(known.last_seen, excluded.last_seen),
    sessions = known.sessions + excluded.sessions, turns = known.turns + excluded.turns,
    memories = known.memories + excluded.memories, recalls = known.recalls + excluded.recalls;
