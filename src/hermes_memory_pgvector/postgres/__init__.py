"""A statement and its values go in, rows or an error of ours come out, within a deadline: the driver's room."""
