-- The former names of a theme.
SELECT old FROM theme_aliases WHERE new = %(theme)s ORDER BY old;
