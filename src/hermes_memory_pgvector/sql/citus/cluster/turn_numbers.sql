-- As many new numbers of turns as are wanted.
SELECT nextval('conversations_id_seq') FROM generate_series(1, %(wanted)s::integer);
