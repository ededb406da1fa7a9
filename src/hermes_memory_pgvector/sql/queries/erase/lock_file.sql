-- A home's file as last compared, and which forgotten entries it was seen to hold.
SELECT entries, withheld FROM memory_files WHERE home_id = %(home_id)s AND target = %(target)s FOR UPDATE;
