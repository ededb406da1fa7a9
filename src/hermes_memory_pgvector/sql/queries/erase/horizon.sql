-- A number of each table that every row there has a lower one than, and every later row a higher one.
SELECT nextval('conversations_id_seq'), nextval('memory_entries_id_seq'), nextval('memory_operations_id_seq'),
       nextval('delegations_id_seq'), nextval('recall_log_id_seq');
