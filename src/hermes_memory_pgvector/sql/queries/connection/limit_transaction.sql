-- sets the time limits of the current transaction, in milliseconds
SELECT set_config(given.name, given.value::text, true)
FROM unnest(%(names)s::text[], %(values)s::bigint[]) AS given (name, value);
