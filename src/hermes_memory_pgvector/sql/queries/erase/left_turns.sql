-- How many turns are there that a receipt says are forgotten, by their words or by their theme and session?
SELECT count(*) FROM conversations AS turn, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT turn.agent_identity UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = turn.agent_identity)
               AS named (theme),
               encode(coalesce(turn.digest, hermes_turn_digest(turn.role, turn.content)), 'hex') AS digest,
               LATERAL (VALUES (ARRAY['turn', named.theme, turn.content]),
                               (ARRAY['said', named.theme, turn.session_id, digest]),
                               (ARRAY['occurrence', named.theme, turn.session_id, digest, turn.ordinal::text]),
                               (ARRAY['moment', named.theme, turn.session_id, digest,
                                      (extract(epoch FROM turn.ts) * 1000000)::bigint::text])) AS spoken (words)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          FROM (VALUES ('', ''), (turn.agent_identity, ''), ('', turn.session_id), (turn.agent_identity, turn.session_id))
               AS place (theme, session_id)
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['author', lower(value #>> '{}'), place.theme, place.session_id])
          FROM jsonb_path_query(turn.metadata, '$.author.*') AS value,
               (VALUES ('', ''), (turn.agent_identity, ''), ('', turn.session_id), (turn.agent_identity, turn.session_id))
               AS place (theme, session_id)
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND turn.ts <= known.forgotten_at);
