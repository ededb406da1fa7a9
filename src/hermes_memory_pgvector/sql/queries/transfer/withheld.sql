-- Which forgotten entries do files of homes still hold?
SELECT home_id, target, hash FROM memory_files, unnest(withheld) AS hash
ORDER BY home_id COLLATE "C", target, hash;
