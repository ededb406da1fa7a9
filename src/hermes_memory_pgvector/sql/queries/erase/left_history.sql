-- How many operations on memories still say what a receipt says is forgotten?
SELECT count(*) FROM memory_operations AS operation, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one
WHERE EXISTS (
    SELECT FROM (
          SELECT hermes_tombstone(one.key, spoken.words)
          FROM (SELECT operation.agent_identity
                UNION ALL SELECT alias.old FROM theme_aliases AS alias WHERE alias.new = operation.agent_identity) AS named (theme),
               unnest(ARRAY[operation.content, operation.previous, operation.old_text]) AS said (text),
               LATERAL (VALUES (ARRAY['memory', named.theme, operation.target, said.text]),
                               (ARRAY['noted', named.theme, operation.target, operation.metadata ->> 'session_id', said.text]))
               AS spoken (words)
          WHERE said.text <> ''
          UNION ALL
          SELECT hermes_tombstone(one.key, ARRAY['scope', place.theme, place.session_id])
          -- What a session took away from others stays taken away.
          FROM (VALUES ('', ''), (operation.agent_identity, ''),
                       ('', operation.metadata ->> 'session_id'),
                       (operation.agent_identity, operation.metadata ->> 'session_id')) AS place (theme, session_id)
          WHERE place.session_id = '' OR operation.action <> 'remove'
    ) AS told (hash) JOIN tombstones AS known ON known.hash = told.hash
    WHERE known.receipt_id = %(receipt)s AND operation.at <= known.forgotten_at);
