-- How many changes operators have made: forgetting, quarantine, muting, edits, grants. A read replica that has not seen as
-- many as its primary answers no question, because what was taken out of recall may still be there.
--
-- Every such change has its row in the audit log; reading across themes has one, too, and changes nothing.
CREATE TABLE operator_changes (
    id     boolean PRIMARY KEY DEFAULT true CHECK (id),
    number bigint  NOT NULL DEFAULT 0
);
INSERT INTO operator_changes DEFAULT VALUES;

-- At the end of the transaction, so that nobody waits for this one row while holding anything that others wait for.
CREATE CONSTRAINT TRIGGER note_change AFTER INSERT ON audit_log
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.action <> 'read') EXECUTE FUNCTION hermes_note_change();
