-- How many turns are there that a receipt says are forgotten, by their words or by their theme and session?
SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM tombstones AS known
                                      WHERE known.receipt_id = %(receipt)s AND turn.ts <= known.forgotten_at
                                        AND known.hash IN (hermes_tombstone(one.key, ARRAY['turn', turn.agent_identity, turn.content]),
                                                           hermes_tombstone(one.key, ARRAY['said', turn.agent_identity, turn.session_id,
                                                                                           turn.role, turn.content])))),
       count(*) FILTER (WHERE EXISTS (SELECT FROM tombstones AS known
                                      WHERE known.receipt_id = %(receipt)s AND turn.ts <= known.forgotten_at
                                        AND known.hash IN (hermes_tombstone(one.key, ARRAY['scope', '', '']),
                                                           hermes_tombstone(one.key, ARRAY['scope', turn.agent_identity, '']),
                                                           hermes_tombstone(one.key, ARRAY['scope', '', turn.session_id]),
                                                           hermes_tombstone(one.key, ARRAY['scope', turn.agent_identity, turn.session_id]))))
FROM conversations AS turn, (SELECT coalesce(receipt.key, own.key) AS key FROM erasure_receipts AS receipt, erasure_key AS own
      WHERE receipt.id = %(receipt)s) AS one;
