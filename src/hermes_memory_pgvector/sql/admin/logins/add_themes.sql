-- gives themes to a login
INSERT INTO login_themes (login, theme) SELECT %(login)s, named.theme FROM unnest(%(themes)s::text[]) AS named (theme)
ON CONFLICT DO NOTHING
