-- sets the time limits of the current transaction, and the themes it is about, also under the names they have now
SELECT set_config(given.name, given.value, true)
FROM unnest(%(names)s::text[], %(values)s::text[]) AS given (name, value)
UNION ALL
SELECT set_config('hermes.themes', (%(themes)s::text[] || ARRAY(
    SELECT alias.new FROM theme_aliases AS alias
    WHERE alias.old = ANY (%(themes)s::text[]) AND (alias.old = %(own)s::text OR NOT hermes_is_private(alias.new))))::text, true);
