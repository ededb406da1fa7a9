-- How many rows of each table hold one of these texts, in any spelling of case?
SELECT table_name, rows FROM hermes_count_texts(%(needles)s::text[]) ORDER BY 1;
