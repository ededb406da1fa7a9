-- What may the login of this session do with the theme that its transaction is about? No row for the fleet's own login.
SELECT granted.login, coalesce(cardinality(hermes_login_themes(false)), 0) > 0, granted.may_write, granted.may_create
FROM login_grants AS granted WHERE granted.login = session_user;
