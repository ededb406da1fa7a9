-- A home's file as last compared; also the mutex between two processes of that home.
SELECT entries FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s FOR UPDATE;
