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
