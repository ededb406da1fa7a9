-- sets the time limits of the current transaction, and the themes it is about, also under the names they have now
SELECT hermes_say(%(names)s::text[] || 'hermes.themes'::text, %(values)s::text[] || ((%(themes)s::text[] || ARRAY(
    SELECT alias.new FROM theme_aliases AS alias
    WHERE alias.old = ANY (%(themes)s::text[])
      AND (alias.old = %(own)s::text OR NOT hermes_is_private(alias.new))))::text));
