-- how far a sequence is
SELECT last_value, is_called FROM {sequence}
