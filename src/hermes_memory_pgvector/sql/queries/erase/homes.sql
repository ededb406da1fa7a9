-- Every home that has ever delivered anything to this database, and when it was last heard of, if that is known.
--
-- What other agents wrote through `mcp` is held by no home.
SELECT sign.home_id, max(sign.at)
FROM (
    SELECT home_id, since AS at FROM memory_sources
    UNION ALL
    SELECT home_id, greatest(updated_at, compared_at) FROM memory_files
    UNION ALL
    SELECT home_id, updated_at FROM journal_writers
    UNION ALL
    SELECT home_id, NULL FROM journals_ended
) AS sign
WHERE sign.home_id NOT IN ('', 'mcp')
GROUP BY sign.home_id ORDER BY 2 DESC NULLS LAST, 1;
