-- Row-level security, forced where that changes nothing for the owner: who sees which rows of every table that has a theme or belongs to a home.
--
-- {fleet}: the roles that run the fleet's agents. Their transactions say what they are about (store.reach), which is a net
-- under the statements' own predicates. A login that was granted themes (login_grants) sees those, as far as its
-- transaction names them. Everybody else sees nothing; the owner, as whom the functions with their own checks run, all.
--
-- A new table needs its line here; tests/database/test_walls.py finds one that has none. Everything is made only where it
-- differs from what is there: an unchanged database is migrated without a lock on its tables.
DO $policies$
DECLARE
    fleet    CONSTANT text := (SELECT string_agg(quote_ident(role), ', ' ORDER BY role) FROM unnest({fleet}::text[]) AS role);
    purpose  CONSTANT text := $$(SELECT coalesce(current_setting('hermes.purpose', true), ''))$$;
    named    CONSTANT text := $$((SELECT nullif(current_setting('hermes.themes', true), '')::text[]))::text[]$$;
    -- What a login was granted, to read or to change. Put together from parts whose cost the planner counts as nothing: it
    -- asks the cheapest condition first, and before ours a caller's comparison could look at rows of everybody (Postgres
    -- calls those of texts and numbers leakproof). Whether ours is asked at all would tell what it saw, letter by letter.
    -- The fleet's own roles are never granted single themes: they need not ask for each statement.
    ours     CONSTANT text := format('CASE WHEN current_user = ANY (%L::name[]) THEN NULL ELSE ', {fleet}::text[]);
    granted  CONSTANT text :=
        '((SELECT jsonb_object(own.themes, own.themes) FROM (SELECT ' || ours || 'hermes_login_themes(changes) END OFFSET 0)'
        ' AS own (themes)))[agent_identity] IS NOT NULL'
        ' OR hermes_is_like(agent_identity, (SELECT ' || ours || 'hermes_login_patterns(changes) END),'
        ' (SELECT current_setting(''hermes.purpose'', true) = ''everywhere''))';
    reads    CONSTANT text := replace(granted, '(changes)', '(false)');
    changes  CONSTANT text := replace(granted, '(changes)', '(true)');
    -- What belongs to a login, said as cheaply.
    own      CONSTANT text := '((SELECT jsonb_build_object(session_user::text, true)))[login] IS NOT NULL';
    -- An owner that is no superuser sees everything by its policy; forced on it, row-level security would only keep it from
    -- COPY, from a plain pg_dump and from its own statistics.
    is_forced CONSTANT boolean := (SELECT r.rolsuper OR r.rolbypassrls FROM pg_catalog.pg_roles AS r WHERE r.rolname = current_user);
    wanted   record;
BEGIN
    FOR wanted IN
        WITH secured AS (
            SELECT c.oid, c.relname::text AS name,
                   c.relname IN ('memory_entries', 'conversations', 'memory_sources', 'memory_operations', 'delegations',
                                 'pending_vectors', 'recall_log', 'theme_indexes', 'quarantined_turns',
                                 'quarantined_memories', 'agents')
                   OR c.relname ~ '^(turn|memory)_vectors_[0-9]+$' AS has_theme
            FROM pg_catalog.pg_class AS c
            WHERE c.relkind IN ('r', 'p') AND c.relnamespace = quote_ident(current_schema())::regnamespace
        ), ruled AS (
            SELECT s.oid, rule.policy, rule.command, rule.roles, rule.visible
            FROM secured AS s
            CROSS JOIN LATERAL (VALUES
                ('hermes_fleet', 'ALL', fleet,
                 -- A question looks at many rows of one theme, so that comes first.
                 format('agent_identity = ANY (%s) OR %s IN (''writer'', ''upkeep'', ''operator'')', named, purpose)),
                ('hermes_fleet_reads', 'SELECT', fleet,
                 format('%s = ''overview'' OR %1$s = ''everywhere'' AND NOT hermes_is_private(agent_identity)', purpose)),
                ('hermes_login', 'ALL', 'PUBLIC', changes),
                ('hermes_login_reads', 'SELECT', 'PUBLIC', reads)
            ) AS rule (policy, command, roles, visible)
            WHERE s.has_theme AND NOT (s.name IN ('recall_log', 'agents') AND rule.policy = 'hermes_login')
            UNION ALL
            SELECT s.oid, rule.policy, rule.command, rule.roles, rule.visible
            FROM (VALUES
                -- Reading leaves its traces, too: whoever may read a theme may add what it was asked.
                ('recall_log', 'hermes_login', 'ALL', 'PUBLIC', reads),
                ('agents', 'hermes_login', 'ALL', 'PUBLIC', reads),
                -- Who is at work: names of machines and folders, and numbers.
                ('agent_processes', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('agent_processes', 'hermes_login', 'ALL', 'PUBLIC', own),
                ('past_processes', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('past_processes', 'hermes_login', 'ALL', 'PUBLIC', own),
                -- The texts of a home: as the fleet's writer and its operator, or of this login.
                ('memory_files', 'hermes_fleet', 'ALL', fleet,
                 format('%s IN (''writer'', ''upkeep'', ''operator'', ''overview'')', purpose)),
                ('memory_files', 'hermes_login', 'ALL', 'PUBLIC', own),
                ('dead_letters', 'hermes_fleet', 'ALL', fleet,
                 format('%s IN (''writer'', ''upkeep'', ''operator'', ''overview'')', purpose)),
                ('dead_letters', 'hermes_login', 'ALL', 'PUBLIC', own),
                -- The books of a home: nothing to read in them, but whoever changes them makes a journal skip records.
                ('journal_writers', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('journal_writers', 'hermes_login', 'ALL', 'PUBLIC', own),
                ('journals_ended', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('journals_ended', 'hermes_login', 'ALL', 'PUBLIC', own),
                -- What was done, by whom: names and numbers.
                ('audit_log', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('audit_log', 'hermes_login', 'ALL', 'PUBLIC', own),
                ('erasure_receipts', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('erasure_receipts', 'hermes_login', 'ALL', 'PUBLIC', own),
                ('tombstones', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('theme_aliases', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('theme_aliases', 'hermes_login_reads', 'SELECT', 'PUBLIC',
                 'new LIKE ANY (((SELECT hermes_granted_themes()))::text[])'),
                -- Which batches are held back: names and times, of others' sessions and themes, too.
                ('quarantines', 'hermes_fleet', 'ALL', fleet, 'true'),
                ('quarantines', 'hermes_login_reads', 'SELECT', 'PUBLIC',
                 'id = ANY (((SELECT hermes_login_quarantines()))::bigint[])'),
                ('login_grants', 'hermes_fleet', 'SELECT', fleet, 'true'),
                ('login_grants', 'hermes_login_reads', 'SELECT', 'PUBLIC', own),
                ('login_themes', 'hermes_fleet', 'SELECT', fleet, 'true'),
                ('login_themes', 'hermes_login_reads', 'SELECT', 'PUBLIC', own)
            ) AS rule (name, policy, command, roles, visible)
            JOIN secured AS s ON s.name = rule.name
        ), complete AS (
            SELECT r.* FROM ruled AS r
            UNION ALL
            SELECT DISTINCT r.oid, 'hermes_owner', 'ALL', quote_ident(current_user), 'true' FROM ruled AS r
        )
        SELECT c.oid::regclass AS name, c.policy, c.command, c.roles, c.visible, known.oid AS known,
               NOT t.relrowsecurity OR t.relforcerowsecurity <> is_forced AS is_open, md5(concat_ws('|', c.command, c.roles, c.visible)) AS mark
        FROM complete AS c
        JOIN pg_catalog.pg_class AS t ON t.oid = c.oid
        LEFT JOIN pg_catalog.pg_policy AS known ON known.polrelid = c.oid AND known.polname = c.policy
        WHERE c.roles IS NOT NULL
        ORDER BY c.oid, c.policy
    LOOP
        IF wanted.is_open THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, %s ROW LEVEL SECURITY', wanted.name,
                           CASE WHEN is_forced THEN 'FORCE' ELSE 'NO FORCE' END);
        END IF;
        IF wanted.known IS NOT NULL AND obj_description(wanted.known, 'pg_policy') IS NOT DISTINCT FROM wanted.mark THEN
            CONTINUE;
        END IF;
        IF wanted.known IS NOT NULL THEN
            EXECUTE format('DROP POLICY %I ON %s', wanted.policy, wanted.name);
        END IF;
        EXECUTE format('CREATE POLICY %I ON %s FOR %s TO %s USING (%s)',
                       wanted.policy, wanted.name, wanted.command, wanted.roles, wanted.visible);
        EXECUTE format('COMMENT ON POLICY %I ON %s IS %L', wanted.policy, wanted.name, wanted.mark);
    END LOOP;
END
$policies$;
