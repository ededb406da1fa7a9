-- Whether this role may change the queue for vectors, without which it cannot embed.
SELECT coalesce(has_table_privilege(to_regclass('pending_vectors'), 'UPDATE'), true);
