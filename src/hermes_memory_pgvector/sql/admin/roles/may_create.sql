-- the schema, quoted, if this role may create objects in it
SELECT quote_ident(current_schema()) WHERE has_schema_privilege(%s, current_schema(), 'CREATE')
