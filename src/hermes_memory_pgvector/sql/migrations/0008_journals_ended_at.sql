-- How far each journal had arrived when it was taken to have ended. A copied home removes its copy of a journal whose
-- own process lives on elsewhere: what that process writes after this number is not a copy of anything.
ALTER TABLE journals_ended ADD COLUMN seqs bigint[] NOT NULL DEFAULT '{}';
UPDATE journals_ended SET seqs = array_fill(9223372036854775807, ARRAY[cardinality(writers)]);
