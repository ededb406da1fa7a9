-- Which homes hold memories, how many, and when did each last change a file or deliver a journal?
--
-- What other agents wrote through `mcp` is held by no home.
SELECT held.home_id, held.entries, heard.at
FROM (SELECT home_id, count(*) AS entries FROM memory_sources WHERE home_id <> 'mcp' GROUP BY home_id) AS held
LEFT JOIN (
    SELECT sign.home_id, max(sign.updated_at) AS at
    FROM (
        SELECT home_id, updated_at FROM memory_files
        UNION ALL
        SELECT home_id, updated_at FROM journal_writers
    ) AS sign
    GROUP BY sign.home_id
) AS heard ON heard.home_id = held.home_id
ORDER BY heard.at DESC NULLS LAST, held.home_id;
