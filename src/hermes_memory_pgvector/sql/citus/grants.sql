-- What the runtime role needs in a distributed database besides.
GRANT SELECT ON shard_anchors, shard_keys, shard_lexemes TO {role};
DO $$
DECLARE
    own regprocedure;
BEGIN
    FOR own IN SELECT oid FROM pg_catalog.pg_proc
               WHERE prosecdef AND proname IN ('hermes_found_in_shard', 'hermes_near_in_shard', 'hermes_by_words_in_shard',
                                               'hermes_turns_before_in_shard')
                 AND pronamespace = quote_ident(current_schema())::regnamespace LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', own);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', own, {role_literal});
    END LOOP;
END $$;
