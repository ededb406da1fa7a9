-- Which themes have other names now, and the key of the tombstones if there are any.
SELECT (SELECT jsonb_object_agg(alias.old, alias.new) FROM theme_aliases AS alias),
       (SELECT one.key FROM erasure_key AS one WHERE EXISTS (SELECT FROM tombstones));
