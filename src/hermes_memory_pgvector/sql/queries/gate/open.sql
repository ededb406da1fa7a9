-- Which themes have other names now; the keys of the tombstones (this database's, and those that receipts from elsewhere
-- brought along), and until when anything is forgotten, null if nothing is.
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       CASE WHEN forgotten.until IS NOT NULL THEN
           ARRAY(SELECT own.key FROM erasure_key AS own
                 UNION SELECT receipt.key FROM erasure_receipts AS receipt WHERE receipt.key IS NOT NULL) END,
       forgotten.until, forgotten.parts_until
FROM (SELECT max(forgotten_at) AS until, max(forgotten_at) FILTER (WHERE part_length IS NOT NULL) AS parts_until
      FROM tombstones) AS forgotten;
