-- The journals of which everything has arrived and whose files are gone, so that a copy that turns up again (a restored
-- backup, say) is not stored a second time. One row names many, which is what makes this smaller than their watermarks.
-- The bucket is the beginning of a journal's name; nothing but the look-up depends on it.
CREATE TABLE journals_ended (
    bucket  text   NOT NULL,
    home_id text   NOT NULL DEFAULT '',
    writers text[] NOT NULL,
    PRIMARY KEY (bucket, home_id)
);
