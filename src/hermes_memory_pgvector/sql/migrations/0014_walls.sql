-- Who may see what: logins of single machines and minions, and whose the books of a home are.
--
-- The policies themselves stand in sql/policies.sql, which every migrate applies.

-- A login that was granted some themes and sees nothing else, whatever the application says.
CREATE TABLE login_grants (
    login      text        PRIMARY KEY,
    may_write  boolean     NOT NULL,
    may_create boolean     NOT NULL,
    made_here  boolean     NOT NULL DEFAULT false,
    granted_at timestamptz NOT NULL DEFAULT now(),
    granted_by text        NOT NULL DEFAULT session_user
);
-- Its themes: names, patterns with * in them, and the themes that it has begun itself.
CREATE TABLE login_themes (
    login    text        NOT NULL REFERENCES login_grants ON DELETE CASCADE,
    theme    text        NOT NULL CHECK (theme <> ''),
    is_begun boolean     NOT NULL DEFAULT false,
    since    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (login, theme)
);
CREATE INDEX login_themes_theme ON login_themes (theme);

-- What belongs to a home and to no theme belongs to the login that wrote it; empty: to the fleet's own.
ALTER TABLE memory_files ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE journal_writers ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE journals_ended ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE erasure_receipts ADD COLUMN login text NOT NULL DEFAULT '';
ALTER TABLE memory_files ALTER COLUMN login SET DEFAULT session_user;
ALTER TABLE journal_writers ALTER COLUMN login SET DEFAULT session_user;
ALTER TABLE journals_ended ALTER COLUMN login SET DEFAULT session_user;
ALTER TABLE dead_letters ALTER COLUMN login SET DEFAULT session_user;
ALTER TABLE erasure_receipts ALTER COLUMN login SET DEFAULT session_user;
