-- Batches that are kept and not recalled: what was poisoned, by whom it was taken out, and which rows it is.
--
-- Rows stay as they are, with their vectors and words; searches leave out the ids that stand here. So a batch of a hundred
-- thousand rows goes and comes back in a moment. What the rule says holds for rows that arrive late, too.
CREATE SEQUENCE quarantines_id_seq;
CREATE TABLE quarantines (
    id         bigint      PRIMARY KEY DEFAULT nextval('quarantines_id_seq'),
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor      text        NOT NULL CHECK (actor <> '' AND length(actor) <= 200),
    home_id    text        NOT NULL DEFAULT '',
    theme      text,
    session_id text,
    origin     text,
    since      timestamptz,
    until      timestamptz,
    is_rule    boolean     NOT NULL DEFAULT true,
    undone_at  timestamptz,
    CHECK (NOT is_rule OR session_id IS NOT NULL OR origin IS NOT NULL OR since IS NOT NULL)
);
ALTER SEQUENCE quarantines_id_seq OWNED BY quarantines.id;

CREATE TABLE quarantined_turns (
    agent_identity text   NOT NULL,
    id             bigint NOT NULL,
    quarantine_id  bigint NOT NULL REFERENCES quarantines (id) ON DELETE CASCADE,
    PRIMARY KEY (agent_identity, id, quarantine_id),
    FOREIGN KEY (agent_identity, id) REFERENCES conversations ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX quarantined_turns_batch ON quarantined_turns (quarantine_id);
CREATE TABLE quarantined_memories (
    agent_identity text   NOT NULL,
    id             bigint NOT NULL,
    quarantine_id  bigint NOT NULL REFERENCES quarantines (id) ON DELETE CASCADE,
    PRIMARY KEY (agent_identity, id, quarantine_id),
    FOREIGN KEY (agent_identity, id) REFERENCES memory_entries ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX quarantined_memories_batch ON quarantined_memories (quarantine_id);

CREATE TRIGGER late_to_quarantine AFTER INSERT ON conversations REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_hold_late();
CREATE TRIGGER late_to_quarantine AFTER INSERT ON memory_entries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_hold_late();
CREATE TRIGGER changed_in_quarantine AFTER UPDATE ON memory_entries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_hold_late();
