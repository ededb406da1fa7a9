-- Which themes have other names now, and the keys of the tombstones if there are any.
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       (SELECT array_agg(one.key) FROM (SELECT own.key FROM erasure_key AS own
                                        UNION
                                        SELECT receipt.key FROM erasure_receipts AS receipt WHERE receipt.key IS NOT NULL) AS one
        WHERE EXISTS (SELECT FROM tombstones));
