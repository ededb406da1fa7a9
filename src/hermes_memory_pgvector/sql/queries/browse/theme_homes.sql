-- Which homes hold memories of each of these themes?
SELECT DISTINCT agent_identity, home_id FROM memory_sources
WHERE agent_identity = ANY (%(themes)s::text[]) AND home_id NOT IN ('', 'mcp')
ORDER BY 1, 2;
