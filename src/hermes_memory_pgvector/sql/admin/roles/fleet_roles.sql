-- the roles that run the fleet's agents, by the policy that is theirs
SELECT r.rolname::text FROM pg_policy AS p JOIN pg_roles AS r ON r.oid = ANY (p.polroles)
WHERE p.polrelid = to_regclass('conversations') AND p.polname = 'hermes_fleet'
