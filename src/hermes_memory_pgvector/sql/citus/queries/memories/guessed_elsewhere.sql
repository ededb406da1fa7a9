-- Which of these entries were put into other themes from their home's file at the moment the theme that wrote them
-- announced them? With each its number, the other theme and the place of the newest operation there.
WITH given AS MATERIALIZED (
    SELECT told.number, told.home_id, hermes_digest(told.content) AS digest, told.at - interval '5 seconds' AS earliest
    FROM unnest(%(home_ids)s::text[], %(contents)s::text[], %(ats)s::timestamptz[])
         WITH ORDINALITY AS told (home_id, content, at, number)
), guessed AS MATERIALIZED (
    SELECT source.home_id, source.agent_identity, source.since, hermes_digest(entry.content) AS digest,
           (SELECT max(operation.order_us) FROM memory_operations AS operation
            WHERE operation.agent_identity = source.agent_identity AND operation.target = %(target)s) AS newest
    FROM memory_sources AS source
    JOIN memory_entries AS entry ON entry.agent_identity = source.agent_identity AND entry.id = source.entry_id
    WHERE source.home_id = ANY (%(home_ids)s::text[]) AND source.origin = 'file' AND source.agent_identity <> %(theme)s
      AND source.since >= (SELECT min(given.earliest) FROM given) AND entry.target = %(target)s
)
SELECT given.number, guessed.agent_identity, guessed.newest
FROM given
JOIN guessed ON guessed.digest = given.digest AND guessed.home_id = given.home_id AND guessed.since >= given.earliest
ORDER BY given.number, guessed.agent_identity;
