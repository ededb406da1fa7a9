-- The forgotten texts that are looked for as parts of others: key, length, hash, and until when each is forgotten.
SELECT known.key, known.part_length, known.hash, known.until FROM hermes_forgotten_parts(%(since)s::timestamptz) AS known;
