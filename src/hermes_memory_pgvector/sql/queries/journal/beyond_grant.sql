-- Who left this record, and which of these themes may that login not write to? Only for logins of single themes.
SELECT letter.login, beyond.themes
FROM dead_letters AS letter JOIN login_grants AS granted ON granted.login = letter.login,
     LATERAL (SELECT array_agg(about.theme ORDER BY about.theme) AS themes
              FROM unnest(%(themes)s::text[]) AS about (theme)
              LEFT JOIN theme_aliases AS alias ON alias.old = about.theme
              WHERE NOT granted.may_write OR NOT EXISTS (
                  SELECT FROM login_themes AS own
                  WHERE own.login = letter.login AND coalesce(alias.new, about.theme) LIKE hermes_theme_pattern(own.theme))) AS beyond
WHERE letter.id = %(id)s::bigint AND letter.login <> session_user AND beyond.themes IS NOT NULL;
