-- How many entries are there that a receipt says are forgotten, by their words or by their theme and session?
SELECT count(*) FROM memory_entries AS entry, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT entry.agent_identity UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = entry.agent_identity)
               AS named (theme),
               LATERAL (VALUES (ARRAY['memory', named.theme, entry.target, entry.content]),
                               (ARRAY['noted', named.theme, entry.target, entry.metadata ->> 'session_id', entry.content]))
               AS spoken (words)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          FROM (VALUES ('', ''), (entry.agent_identity, ''), ('', coalesce(entry.metadata ->> 'session_id', '')),
                       (entry.agent_identity, coalesce(entry.metadata ->> 'session_id', ''))) AS place (theme, session_id)
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND entry.updated_at <= known.forgotten_at);
