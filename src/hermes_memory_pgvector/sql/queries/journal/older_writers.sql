-- From which homes have processes delivered that do not know what is forgotten, since the tables know of versions?
SELECT known.home_id, max(known.updated_at)
FROM journal_writers AS known
WHERE known.schema_version = 0
  AND known.updated_at > (SELECT done.applied_at FROM hermes_pgvector_migrations AS done WHERE done.version = 1)
GROUP BY known.home_id ORDER BY 2 DESC, 1;
