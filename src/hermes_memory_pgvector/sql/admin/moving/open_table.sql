-- lets everybody change a table again who has the right to
DROP TRIGGER IF EXISTS not_in_use ON {table}
