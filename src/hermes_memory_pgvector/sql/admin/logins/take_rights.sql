-- takes every right in this installation from a role
REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};
REVOKE ALL ON ALL SEQUENCES IN SCHEMA {schema} FROM {role};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM {role};
REVOKE ALL ON SCHEMA {schema} FROM {role};
