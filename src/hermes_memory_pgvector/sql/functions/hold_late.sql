-- Trigger: rows that arrive late, or get their words late, and that a quarantine is about, go there at once, whoever
-- brings them.
CREATE OR REPLACE FUNCTION hermes_hold_late() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
    BEGIN
        IF NOT EXISTS (SELECT FROM {schema}.quarantines WHERE undone_at IS NULL AND is_rule) THEN
            RETURN NULL;
        END IF;
        IF TG_TABLE_NAME = 'conversations' THEN
            INSERT INTO {schema}.quarantined_turns (agent_identity, id, quarantine_id)
            SELECT turn.agent_identity, turn.id, rule.id FROM {schema}.quarantines AS rule JOIN added AS turn
              ON (rule.theme IS NULL OR turn.agent_identity = rule.theme)
             AND (rule.session_id IS NULL OR turn.session_id = rule.session_id)
             AND (rule.origin IS NULL OR {schema}.hermes_is_from(
                      {schema}.hermes_origin_of_turn(turn.origin, turn.role), turn.trust, turn.metadata, rule.origin))
             AND (rule.since IS NULL OR turn.ts >= rule.since) AND (rule.until IS NULL OR turn.ts < rule.until)
            WHERE rule.undone_at IS NULL AND rule.is_rule
            ON CONFLICT DO NOTHING;
        ELSE
            INSERT INTO {schema}.quarantined_memories (agent_identity, id, quarantine_id)
            SELECT entry.agent_identity, entry.id, rule.id FROM {schema}.quarantines AS rule JOIN added AS entry
              ON (rule.theme IS NULL OR entry.agent_identity = rule.theme)
             AND (rule.session_id IS NULL OR entry.metadata ->> 'session_id' = rule.session_id)
             AND (rule.origin IS NULL OR {schema}.hermes_is_from(
                      {schema}.hermes_origin_of_memory(entry.origin, entry.metadata), entry.trust, entry.metadata, rule.origin))
             AND (rule.since IS NULL OR entry.updated_at >= rule.since)
             AND (rule.until IS NULL OR entry.updated_at < rule.until)
            WHERE rule.undone_at IS NULL AND rule.is_rule
            ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$;
