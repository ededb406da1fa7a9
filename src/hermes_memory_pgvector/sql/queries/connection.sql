-- set_conventions --
-- sets what statements depend on, and the time limits in milliseconds
SELECT set_config(given.name, given.value, %(is_local)s)
FROM unnest(%(names)s::text[], %(values)s::text[]) AS given (name, value);
