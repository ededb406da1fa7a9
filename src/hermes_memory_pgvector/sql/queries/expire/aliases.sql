-- The themes that were merged into another one, and that one.
SELECT old, new FROM theme_aliases;
