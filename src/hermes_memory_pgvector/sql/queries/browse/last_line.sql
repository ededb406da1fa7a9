-- The highest number of a line that counts rows.
SELECT coalesce(max(id), 0) FROM theme_growth;
