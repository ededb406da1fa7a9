-- In how many seconds is the next row due that waits for a vector? Null when none waits.
SELECT greatest(0, extract(epoch FROM min(due_at) - now()))::double precision FROM pending_vectors;
