-- A theme that was merged into another one is a theme again.
DELETE FROM theme_aliases WHERE old = %(theme)s;
