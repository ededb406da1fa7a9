-- says which installation this is, where it has moved to, and which one is being copied to here
UPDATE hermes_pgvector_installation SET id = %(id)s, moved_to = %(moved_to)s, filled_from = %(filled_from)s
