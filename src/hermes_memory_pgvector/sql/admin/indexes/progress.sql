-- how far the index build of another connection has come
SELECT phase, CASE WHEN blocks_total > 0 THEN least(1.0, blocks_done / blocks_total::double precision) END AS share
FROM pg_stat_progress_create_index WHERE pid = %s
