-- On a cluster, a record of a theme whose worker is away waits here until it is back; these are the themes it is about. A
-- record that Postgres rejects waits for nothing.
ALTER TABLE dead_letters ADD COLUMN waits_for text[];
CREATE INDEX dead_letters_waiting ON dead_letters (id) WHERE waits_for IS NOT NULL;
