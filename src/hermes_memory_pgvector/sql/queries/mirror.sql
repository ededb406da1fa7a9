-- create_file --
-- Makes sure that a home's file has a row to be compared with.
INSERT INTO memory_files (home_id, target, entries) VALUES (%(home_id)s, %(target)s, '[]'::jsonb)
ON CONFLICT (home_id, target) DO NOTHING;


-- held --
-- Which entries does this home hold, in which themes and since when?
SELECT entry.agent_identity, entry.content, source.since
FROM memory_sources AS source
JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
WHERE source.home_id = %(home_id)s AND entry.target = %(target)s;


-- last_comparison --
-- Which forgotten entries did this file hold when it was last compared, and when was that?
SELECT withheld, nullif(compared_at, '-infinity') FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s;


-- lock_file --
-- A home's file as last compared; also the mutex between two processes of that home.
SELECT entries FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s FOR UPDATE;


-- lock_home --
-- Waits for announcements of this home that are being stored, and holds new ones back until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-home:' || %(home_id)s, 7));


-- note_comparison --
-- Notes that a home's file was compared, and which forgotten entries it still holds.
UPDATE memory_files SET withheld = %(withheld)s::bytea[], compared_at = clock_timestamp()
WHERE home_id = %(home_id)s AND target = %(target)s;


-- set_file --
-- Notes what a home's file holds now.
UPDATE memory_files SET entries = %(entries)s::jsonb, updated_at = now()
WHERE home_id = %(home_id)s AND target = %(target)s;
