-- Keeps records whose themes cannot be reached now. Arrays of equal length; waits_for holds lists of themes, as JSON text.
INSERT INTO dead_letters (writer, seq, payload, reason, waits_for)
SELECT given.writer, given.seq, given.payload, %(reason)s, ARRAY(SELECT jsonb_array_elements_text(given.waits_for::jsonb))
FROM unnest(%(writers)s::text[], %(seqs)s::bigint[], %(payloads)s::bytea[], %(waits_for)s::text[])
     WITH ORDINALITY AS given (writer, seq, payload, waits_for, place)
ORDER BY given.place
ON CONFLICT (writer, seq) DO NOTHING;
