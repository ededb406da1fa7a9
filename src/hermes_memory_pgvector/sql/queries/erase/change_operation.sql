-- Gives an operation another meaning that needs fewer words.
UPDATE memory_operations
SET action = %(action)s, content = %(content)s, old_text = %(old_text)s, previous = %(previous)s, metadata = %(metadata)s::jsonb
WHERE agent_identity = %(theme)s AND target = %(target)s AND order_us = %(order_us)s AND writer = %(writer)s
  AND seq = %(seq)s AND part = %(part)s;
