-- The quarantine that an import made for what was quarantined elsewhere since a time.
SELECT id FROM quarantines WHERE NOT is_rule AND actor = %(actor)s AND at = %(at)s::timestamptz AND undone_at IS NULL ORDER BY id LIMIT 1;
