-- takes the themes that are not named away from a login, except those it has begun
DELETE FROM login_themes WHERE login = %(login)s AND NOT is_begun AND theme <> ALL (%(themes)s::text[])
