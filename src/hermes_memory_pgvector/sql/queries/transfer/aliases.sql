-- Which themes have other names, in a fixed order?
SELECT old, new, since, finished_at FROM theme_aliases
WHERE %(theme)s::text IS NULL OR %(theme)s IN (old, new)
ORDER BY old COLLATE "C";
