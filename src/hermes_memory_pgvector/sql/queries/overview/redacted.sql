-- How many secrets were masked in what is stored, by kind.
SELECT kind, sum(found)::bigint AS found
FROM (SELECT each.key AS kind, each.value::integer AS found
      FROM conversations AS turn, jsonb_each_text(turn.metadata -> 'redacted') AS each
      WHERE turn.metadata ? 'redacted' AND jsonb_typeof(turn.metadata -> 'redacted') = 'object'
      UNION ALL
      SELECT each.key, each.value::integer
      FROM memory_entries AS entry, jsonb_each_text(entry.metadata -> 'redacted') AS each
      WHERE entry.metadata ? 'redacted' AND jsonb_typeof(entry.metadata -> 'redacted') = 'object') AS counted
GROUP BY kind ORDER BY found DESC, kind;
