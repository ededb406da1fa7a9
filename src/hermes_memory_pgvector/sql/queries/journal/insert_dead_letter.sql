-- Keeps a record that Postgres rejects.
INSERT INTO dead_letters (writer, seq, payload, reason) VALUES (%(writer)s, %(seq)s, %(payload)s, %(reason)s)
ON CONFLICT (writer, seq) DO NOTHING;
