-- sets a sequence
SELECT setval(format('%%I.%%I', current_schema(), %(name)s::text)::regclass, %(value)s, %(is_called)s)
