-- Which themes have other names now; the keys of the tombstones, and until when anything is forgotten, null if nothing is.
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       (SELECT array_agg(one.key) FROM (SELECT own.key FROM erasure_key AS own
                                        UNION
                                        SELECT receipt.key FROM erasure_receipts AS receipt WHERE receipt.key IS NOT NULL) AS one),
       (SELECT max(known.forgotten_at) FROM tombstones AS known),
       (SELECT max(part.forgotten_at) FROM tombstones AS part WHERE part.part_length IS NOT NULL);
