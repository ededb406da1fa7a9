-- Deletes the agents of a theme from the registry.
DELETE FROM agents AS agent WHERE agent.agent_identity = %(theme)s;
