-- Takes back turns of a session that the user has undone.
DELETE FROM conversations
WHERE agent_identity = %(theme)s AND session_id = %(session_id)s AND ts <= %(at)s::timestamptz
  AND (digest, ordinal) IN (
      SELECT decode(undone.digest, 'hex'), undone.ordinal
      FROM unnest(%(digests)s::text[], %(ordinals)s::integer[]) AS undone (digest, ordinal)
  );
