-- The themes that hold anything or ever did, by name.
SELECT DISTINCT agent_identity FROM theme_growth ORDER BY agent_identity;
