-- sends rows of a table
COPY (SELECT {columns} FROM {table} WHERE {rows}) TO STDOUT (FORMAT {format})
