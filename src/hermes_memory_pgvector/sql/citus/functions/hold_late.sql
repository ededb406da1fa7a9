-- Trigger of a shard: rows that arrive late, or get their words late, and that a quarantine is about, go there at once.
--
-- Runs with the owner's rights, so whoever calls it must not be able to choose what it means: the search_path has Postgres's
-- own catalog alone, and everything of ours is named with its schema.
CREATE OR REPLACE FUNCTION hermes_hold_late() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
        rules    CONSTANT text := {schema}.hermes_beside(TG_TABLE_NAME, 'quarantines');
        has_rule boolean;
    BEGIN
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE undone_at IS NULL AND is_rule)', rules) INTO has_rule;
        IF NOT has_rule THEN
            RETURN NULL;
        END IF;
        IF starts_with(TG_TABLE_NAME, 'conversations') THEN
            EXECUTE format(
                'INSERT INTO %s (agent_identity, id, quarantine_id)
                 SELECT turn.agent_identity, turn.id, rule.id FROM %s AS rule JOIN added AS turn
                   ON (rule.theme IS NULL OR turn.agent_identity = rule.theme)
                  AND (rule.session_id IS NULL OR turn.session_id = rule.session_id)
                  AND (rule.origin IS NULL OR {schema}.hermes_is_from(
                           {schema}.hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, rule.origin))
                  AND (rule.since IS NULL OR turn.ts >= rule.since) AND (rule.until IS NULL OR turn.ts < rule.until)
                 WHERE rule.undone_at IS NULL AND rule.is_rule
                 ON CONFLICT DO NOTHING', {schema}.hermes_beside(TG_TABLE_NAME, 'quarantined_turns'), rules);
        ELSE
            EXECUTE format(
                'INSERT INTO %s (agent_identity, id, quarantine_id)
                 SELECT entry.agent_identity, entry.id, rule.id FROM %s AS rule JOIN added AS entry
                   ON (rule.theme IS NULL OR entry.agent_identity = rule.theme)
                  AND (rule.session_id IS NULL OR entry.metadata ->> ''session_id'' = rule.session_id)
                  AND (rule.origin IS NULL OR {schema}.hermes_is_from(
                           {schema}.hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, rule.origin))
                  AND (rule.since IS NULL OR entry.updated_at >= rule.since)
                  AND (rule.until IS NULL OR entry.updated_at < rule.until)
                 WHERE rule.undone_at IS NULL AND rule.is_rule
                 ON CONFLICT DO NOTHING', {schema}.hermes_beside(TG_TABLE_NAME, 'quarantined_memories'), rules);
        END IF;
        RETURN NULL;
    END $$;
