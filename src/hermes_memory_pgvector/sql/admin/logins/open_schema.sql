-- the schemas, quoted, in which a role may create objects that our functions could take for theirs
SELECT quote_ident(n.nspname) FROM pg_namespace AS n
WHERE n.oid IN (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('conversations')
                UNION SELECT extnamespace FROM pg_extension WHERE extname = 'vector')
  AND has_schema_privilege(%(login)s, n.oid, 'CREATE')
