-- limit_transaction --
-- sets the time limits of the current transaction, in milliseconds
SELECT set_config(given.name, given.value, true)
FROM unnest(%(names)s::text[], %(values)s::text[]) AS given (name, value);
