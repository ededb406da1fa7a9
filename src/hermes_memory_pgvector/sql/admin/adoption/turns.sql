-- copies the turns of an earlier installation and numbers the occurrences of equal ones
WITH copied AS (
    INSERT INTO conversations
        (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id, digest, ordinal, origin)
    SELECT theme, id, session_id, role, content, ts, metadata, {parent}, hermes_turn_digest(role, content),
           row_number() OVER (PARTITION BY theme, session_id, hermes_turn_digest(role, content) ORDER BY ts, id), 'import'
    FROM (SELECT *, coalesce(nullif(lower(btrim(agent_identity)), ''), 'default') AS theme
          FROM adopted_conversations) AS old
    ORDER BY id
    RETURNING 1
) SELECT count(*) FROM copied
