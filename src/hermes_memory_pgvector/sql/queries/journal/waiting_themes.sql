-- The themes that records wait for, under the names they have now.
SELECT DISTINCT coalesce(alias.new, waiting.theme)
FROM (SELECT unnest(waits_for) AS theme FROM dead_letters WHERE waits_for IS NOT NULL) AS waiting
LEFT JOIN theme_aliases AS alias ON alias.old = waiting.theme;
