-- What each node has of our functions, as one hash; a node that does not answer says why. Only where Citus is installed.
SELECT node.nodename || ':' || node.nodeport, said.success, said.result
FROM run_command_on_all_nodes($said$
    SELECT md5(string_agg(n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')'
                          || md5(p.prosrc) || p.prosecdef, ' ' ORDER BY n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)))
    FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname ~ '^hermes_shard_[0-9]+$' OR p.proname LIKE 'hermes\_%\_in\_shard' OR p.proname IN (
        'hermes_beside', 'hermes_next_line', 'hermes_note_added', 'hermes_note_gone', 'hermes_note_moved', 'hermes_hold_late',
        'hermes_reach', 'hermes_shard_statistics', 'hermes_fill_lexemes', 'hermes_rank', 'hermes_is_hit', 'hermes_weigh_terms',
        'hermes_code', 'hermes_digest', 'hermes_is_private')
$said$) AS said
JOIN pg_dist_node AS node ON node.nodeid = said.nodeid ORDER BY node.groupid;
