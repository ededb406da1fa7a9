-- The agents of this database: a theme, as a home works for it; those at work last first.
SELECT agent.agent_identity, agent.home_id, agent.host, agent.kind, agent.version, agent.first_seen, agent.last_seen,
       agent.sessions, agent.turns, agent.memories, agent.recalls
FROM agents AS agent
WHERE %(theme)s::text IS NULL OR agent.agent_identity = %(theme)s::text
ORDER BY agent.last_seen DESC, agent.agent_identity, agent.home_id LIMIT %(limit)s::integer;
