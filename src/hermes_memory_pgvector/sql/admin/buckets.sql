-- deal_themes --
-- which bucket each theme is dealt to, for as long as the transaction lasts
CREATE TEMPORARY TABLE dealt ON COMMIT DROP AS
SELECT given.theme, given.bucket FROM unnest(%s::text[], %s::integer[]) AS given (theme, bucket)


-- set_places --
-- says where themes lie that lie elsewhere than their names say
INSERT INTO theme_places (theme, bucket)
SELECT given.theme, given.bucket FROM unnest(%s::text[], %s::integer[]) AS given (theme, bucket)


-- deal --
-- gives a bucket the rows of its themes
INSERT INTO {bucket}.{table} ({columns}) SELECT {columns} FROM {table}
WHERE agent_identity IN (SELECT theme FROM dealt WHERE bucket = {number})


-- copy --
-- gives a bucket all rows of a table
INSERT INTO {bucket}.{table} ({columns}) SELECT {columns} FROM {table}


-- deal_hidden --
-- gives a bucket the rules that its rows name, and those that what arrives is asked about
INSERT INTO {bucket}.hidden ({columns}) SELECT {columns} FROM hidden AS rule
WHERE rule.theme IN (SELECT dealt.theme FROM dealt WHERE dealt.bucket = {number})
   OR rule.theme IS NULL AND (rule.is_open
       OR rule.id IN (SELECT turn.hidden_by FROM {bucket}.conversations AS turn
                      UNION SELECT entry.hidden_by FROM {bucket}.memory_entries AS entry))


-- deal_aliases --
-- gives a bucket the former names of its themes, and no others: a copy that a later renaming does not reach says what is over
INSERT INTO {bucket}.{table} ({columns}) SELECT {columns} FROM {table}
WHERE new IN (SELECT theme FROM dealt WHERE bucket = {number})


-- set_buckets --
-- notes the schemas of the buckets
UPDATE hermes_pgvector_installation SET buckets = %s


-- sequences --
-- the sequences that number the rows of a bucket
SELECT sequencename::text FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1


-- last_number --
-- the number a sequence has given last
SELECT coalesce(last_value, 0) FROM pg_sequences WHERE schemaname = current_schema() AND sequencename = %s


-- number --
-- lets a sequence count so that no two buckets give the same number
ALTER SEQUENCE {sequence} INCREMENT BY {step} START WITH {start} RESTART WITH {next}


-- drop --
-- takes tables away whose rows the buckets have, and the views that show them
DROP TABLE {} CASCADE


-- searched --
-- the tables of a schema that recall reads
SELECT relname::text FROM pg_class
WHERE relnamespace = to_regnamespace(quote_ident(%s)) AND relkind = 'r'
  AND (relname IN ('memory_entries', 'conversations') OR relname ~ '^(memory|turn)_vectors_[0-9]+$')
ORDER BY 1
