-- The next logged recalls of a theme that is being moved.
SELECT logged.id FROM recall_log AS logged WHERE logged.agent_identity = %(theme)s ORDER BY logged.id LIMIT %(limit)s::integer;
