-- Makes sure that a journal has a watermark.
INSERT INTO journal_writers (writer, seq, home_id) VALUES (%(writer)s, 0, %(home_id)s)
ON CONFLICT (writer) DO NOTHING;
