-- held --
-- Which entries does this home hold, in which themes and since when?
SELECT agent_identity, content, (homes -> %(home_id)s::text ->> 's')::bigint
FROM memory_entries
WHERE homes ? %(home_id)s AND target = %(target)s;


-- last_comparison --
-- A home's file as last compared.
SELECT digests, written_us FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s;


-- lock_home --
-- Waits for announcements of this home that are being stored, and holds new ones back until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('hermes-home:' || %(home_id)s, 7));


-- set_file --
-- Notes what a home's file holds now.
INSERT INTO memory_files AS known (home_id, target, digests, compared_at, written_us)
VALUES (%(home_id)s, %(target)s, %(digests)s::bytea[], %(now)s::timestamptz, %(written_us)s::bigint)
ON CONFLICT (home_id, target) DO UPDATE
SET digests = excluded.digests, compared_at = excluded.compared_at, written_us = excluded.written_us;


-- unsee --
-- Takes entries that a home's tool has taken out from what was last seen in its files: there again, they are news.
UPDATE memory_files AS known
SET digests = ARRAY(SELECT seen.digest FROM unnest(known.digests) WITH ORDINALITY AS seen (digest, place)
                    WHERE seen.digest <> ALL (%(digests)s::bytea[]) ORDER BY seen.place)
WHERE known.home_id = %(home_id)s AND known.target = %(target)s AND known.digests && %(digests)s::bytea[];
