-- Themes that were merged into this one go where it goes.
UPDATE theme_aliases SET new = %(new)s WHERE new = %(old)s AND old <> %(new)s;
