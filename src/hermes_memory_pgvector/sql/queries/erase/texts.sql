-- How many rows of each table hold one of these texts, in what was said until a time, said later, and in names alone?
SELECT table_name, rows, newer, in_names FROM hermes_find_texts(%(needles)s::text[], %(themes)s::text[], %(until)s) ORDER BY 1;
