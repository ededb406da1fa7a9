-- may_create --
-- the schema, quoted, if this role may create objects in it
SELECT quote_ident(current_schema()) WHERE has_schema_privilege(%s, current_schema(), 'CREATE')


-- runtime_roles --
-- the roles that run agents: whoever may insert turns, except the owner
SELECT DISTINCT grantee
FROM information_schema.role_table_grants
WHERE table_schema = current_schema() AND table_name = 'conversations' AND privilege_type = 'INSERT'
  AND grantee NOT IN ('PUBLIC', current_user)
