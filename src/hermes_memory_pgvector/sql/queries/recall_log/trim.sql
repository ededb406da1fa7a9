-- Keeps the newest answers of these themes in the log, so many of each.
SELECT hermes_trim_recall_log(%(themes)s::text[], %(keep)s::integer);
