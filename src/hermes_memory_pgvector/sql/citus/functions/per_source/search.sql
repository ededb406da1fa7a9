-- The best rows for a question; see hermes_found, which also says where they come from.
CREATE OR REPLACE FUNCTION hermes_search(source {row}, {declared}) RETURNS TABLE (
    agent_identity text, id bigint, ts timestamptz, content text, similarity real, rank real, count integer, place text, role text)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path FROM CURRENT
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT found.agent_identity, found.id, found.ts, found.content, found.similarity, found.rank, found.count, found.place, found.role
    FROM hermes_found({nothing}, {given}) AS found ORDER BY found.number;
END $$;
