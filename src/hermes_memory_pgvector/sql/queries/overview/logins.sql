-- Which logins see only some themes, and what may they do there?
SELECT login.login,
       CASE WHEN NOT login.may_write THEN 'reads' WHEN login.may_create THEN 'reads, writes and begins themes beside'
            ELSE 'reads and writes' END,
       ARRAY(SELECT own.theme FROM login_themes AS own WHERE own.login = login.login ORDER BY own.theme)
FROM login_grants AS login ORDER BY login.login;
