-- takes rows of a table
COPY {table} ({columns}) FROM STDIN (FORMAT {format})
