-- The best rows of this shard for a question, with where they come from: what search/turns and search/memories ask for.
CREATE OR REPLACE FUNCTION hermes_found(source {row}, {declared}) RETURNS TABLE ({answered})
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path FROM CURRENT SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET max_parallel_workers_per_gather = 0
    AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT hit.agent_identity, hit.id, hit.ts, hit.content, hit.similarity, hit.rank, hit.count, hit.place, hit.role,
           {origin}, row.trust, row.metadata -> 'tools', hit.number
    FROM hermes_search(source, {given}) WITH ORDINALITY AS hit (agent_identity, id, ts, content, similarity, rank, count, place, role, number)
    CROSS JOIN LATERAL (
        SELECT * FROM {table} AS found WHERE found.agent_identity = hit.agent_identity AND found.id = hit.id OFFSET 0) AS row
    ORDER BY hit.number;
END $$;
