-- Notes what was erased so far.
UPDATE erasure_receipts SET counts = %(counts)s::jsonb WHERE id = %(id)s AND finished_at IS NULL;
