-- May this login read what was forgotten, and the key of it?
SELECT has_table_privilege('erasure_key', 'SELECT') AND has_table_privilege('erasure_receipts', 'SELECT')
   AND has_table_privilege('tombstones', 'SELECT') AND has_table_privilege('memory_files', 'SELECT');
