-- Gives a logged question other words.
UPDATE recall_log SET query = %(query)s WHERE agent_identity = %(theme)s AND id = %(id)s;
