-- makes room for rows that are copied anew
DELETE FROM {table} WHERE {rows}
