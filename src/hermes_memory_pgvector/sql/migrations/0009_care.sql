-- What operators look into and what they leave behind.
--
-- Who did what to the memory, when, and to how many rows. It holds no text: whatever is named here is a theme, an id or a
-- number. The runtime role adds rows and reads them; the time and the login are Postgres's own word.
CREATE SEQUENCE audit_log_id_seq;
CREATE TABLE audit_log (
    id      bigint      PRIMARY KEY DEFAULT nextval('audit_log_id_seq'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    login   text        NOT NULL DEFAULT session_user,
    actor   text        NOT NULL CHECK (actor <> '' AND length(actor) <= 200),
    home_id text        NOT NULL DEFAULT '',
    action  text        NOT NULL CHECK (action ~ '^[a-z][a-z ()-]{0,39}$'),
    theme   text        NOT NULL DEFAULT '',
    subject text        NOT NULL DEFAULT '' CHECK (length(subject) <= 200),
    counts  jsonb       NOT NULL DEFAULT '{}'::jsonb
            CHECK (jsonb_typeof(counts) = 'object' AND NOT jsonb_path_exists(counts, '$.* ? (@.type() != "number")'))
);
ALTER SEQUENCE audit_log_id_seq OWNED BY audit_log.id;

-- Every operation on memories gets a number, by which people name it: `undo e17`.
CREATE SEQUENCE memory_operations_id_seq;
ALTER TABLE memory_operations ADD COLUMN id bigint NOT NULL DEFAULT nextval('memory_operations_id_seq');
ALTER SEQUENCE memory_operations_id_seq OWNED BY memory_operations.id;
CREATE UNIQUE INDEX memory_operations_event ON memory_operations (agent_identity, id);
CREATE INDEX memory_operations_arrival ON memory_operations (id);

-- Rows that are kept and not recalled. They have neither vectors nor lexemes, so that no search comes across them.
ALTER TABLE memory_entries ADD COLUMN muted_at timestamptz;
ALTER TABLE conversations ADD COLUMN muted_at timestamptz;
CREATE INDEX memory_entries_muted ON memory_entries (agent_identity, id) WHERE muted_at IS NOT NULL;
CREATE INDEX conversations_muted ON conversations (agent_identity, id) WHERE muted_at IS NOT NULL;

-- How many rows each theme has and how it grows: the sum of all its lines. Every statement that adds or deletes rows adds
-- lines, so nobody waits for anybody; upkeep adds them up, day by day for the last week. What lies before is one line.
CREATE SEQUENCE theme_growth_id_seq;
CREATE TABLE theme_growth (
    agent_identity text        NOT NULL,
    id             bigint      NOT NULL DEFAULT nextval('theme_growth_id_seq'),
    day            date        NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
    memories       bigint      NOT NULL DEFAULT 0,
    turns          bigint      NOT NULL DEFAULT 0,
    last_write     timestamptz,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE theme_growth_id_seq OWNED BY theme_growth.id;
INSERT INTO theme_growth (agent_identity, day, memories, turns, last_write)
SELECT agent_identity, '-infinity', sum(memories), sum(turns), max(newest)
FROM (SELECT agent_identity, count(*) AS memories, 0 AS turns, max(updated_at) AS newest FROM memory_entries GROUP BY 1
      UNION ALL
      SELECT agent_identity, 0, count(*), max(ts) FROM conversations GROUP BY 1) AS counted
GROUP BY agent_identity;
CREATE TRIGGER growth_by_insert AFTER INSERT ON memory_entries REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_added();
CREATE TRIGGER growth_by_delete AFTER DELETE ON memory_entries REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_gone();
CREATE TRIGGER growth_by_update AFTER UPDATE ON memory_entries REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_moved();
CREATE TRIGGER growth_by_truncate AFTER TRUNCATE ON memory_entries
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_emptied();
CREATE TRIGGER growth_by_insert AFTER INSERT ON conversations REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_added();
CREATE TRIGGER growth_by_delete AFTER DELETE ON conversations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_gone();
CREATE TRIGGER growth_by_update AFTER UPDATE ON conversations REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_moved();
CREATE TRIGGER growth_by_truncate AFTER TRUNCATE ON conversations
    FOR EACH STATEMENT EXECUTE FUNCTION hermes_note_emptied();

-- What recall has answered lately: ids, scores and milliseconds; the question itself only where an operator asked for it.
CREATE SEQUENCE recall_log_id_seq;
CREATE TABLE recall_log (
    agent_identity text        NOT NULL,
    id             bigint      NOT NULL DEFAULT nextval('recall_log_id_seq'),
    at             timestamptz NOT NULL,
    session_id     text        NOT NULL DEFAULT '',
    caller         text        NOT NULL CHECK (caller IN ('prefetch', 'tool')),
    kind           text        NOT NULL CHECK (kind IN ('memory', 'turn')),
    scope          text        NOT NULL,
    query          text,
    degraded       text,
    hits           jsonb       NOT NULL DEFAULT '[]'::jsonb,
    milliseconds   real        NOT NULL,
    PRIMARY KEY (agent_identity, id)
);
ALTER SEQUENCE recall_log_id_seq OWNED BY recall_log.id;
CREATE INDEX recall_log_timeline ON recall_log (agent_identity, at DESC);
