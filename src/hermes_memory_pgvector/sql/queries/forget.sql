-- close_rules --
-- Takes the names and the reason off rules of a forgotten theme or session that hide nothing and will hide nothing.
--
-- theme, session_id: null where it does not matter, but not both.
UPDATE hidden AS rule SET theme = NULL, session_id = NULL, reason = '', is_open = false
WHERE (rule.undone_at IS NOT NULL OR rule.until IS NOT NULL)
  AND (%(theme)s::text IS NOT NULL OR %(session_id)s::text IS NOT NULL)
  AND (%(theme)s::text IS NULL OR rule.theme = %(theme)s::text
       OR rule.theme IS NULL AND rule.session_id = %(session_id)s::text)
  AND (%(session_id)s::text IS NULL OR rule.session_id = %(session_id)s::text)
  AND NOT EXISTS (SELECT FROM hermes_rows AS stored WHERE stored.hidden_by = rule.id);


-- cut_recalls --
-- Deletes logged recalls of a theme.
DELETE FROM recall_log WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- cut_turns --
-- Deletes these turns of a theme; their vectors go with them.
DELETE FROM conversations WHERE agent_identity = %(theme)s AND id = ANY (%(ids)s::bigint[]);


-- entries --
-- Entries that may be meant; shape and options are those of `turns`, and session_id is the session they were written in.
SELECT 'm', entry.agent_identity, entry.id, entry.target, 'add', entry.content, '{}'::text[], entry.metadata, entry.updated_at
FROM memory_entries AS entry
WHERE (%(theme)s::text IS NULL OR entry.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR entry.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR entry.updated_at < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR entry.id = ANY (%(ids)s::bigint[]))
  AND (%(word)s::text IS NULL OR concat_ws(' ', entry.content, entry.metadata) ~ '[^ \n\r\t!"#$''()+,./0-9:;=?@A-Z^_a-z{|}-]|[-=]\r?\n'
       OR strpos(lower(concat_ws(' ', entry.content, entry.metadata) COLLATE "C"), %(word)s::text) > 0)
ORDER BY entry.agent_identity, entry.id;


-- events --
-- Operations on memories that may be meant, or may quote what is meant; shape and options are those of `entries`.
SELECT 'e', operation.agent_identity, operation.id, operation.target, operation.action, operation.content,
       ARRAY[operation.old_text, coalesce(operation.previous, '')], operation.metadata, operation.at
FROM memory_operations AS operation
WHERE (%(theme)s::text IS NULL OR operation.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR operation.metadata ->> 'session_id' = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR operation.at < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR operation.id = ANY (%(ids)s::bigint[]))
  AND (%(word)s::text IS NULL OR concat_ws(' ', operation.content, operation.old_text, operation.previous, operation.metadata) ~ '[^ \n\r\t!"#$''()+,./0-9:;=?@A-Z^_a-z{|}-]|[-=]\r?\n'
       OR strpos(lower(concat_ws(' ', operation.content, operation.old_text, operation.previous, operation.metadata) COLLATE "C"), %(word)s::text) > 0)
ORDER BY operation.agent_identity, operation.id;


-- homes --
-- The homes that have delivered anything, and when each did so last.
SELECT home_id, max(updated_at) FROM journal_writers WHERE home_id <> '' GROUP BY 1 ORDER BY 1;


-- insert_receipt --
-- Writes a receipt.
INSERT INTO receipts (id, forgotten_at, actor, home_id, named, counts, left_over)
VALUES (%(id)s, %(at)s, %(actor)s, %(home_id)s, %(named)s::text[], %(counts)s::jsonb, %(left)s::text[]);


-- letters --
-- Every rejected record.
SELECT id, payload FROM dead_letters ORDER BY id;


-- next_receipt --
-- A number for a receipt, above those of all receipts, and of all marks: after a backup was put back, some have none.
SELECT greatest(nextval('receipts_id_seq'), (SELECT 1 + max(id) FROM receipts), 1 + %(marked)s::bigint);


-- of_expiry --
-- The receipts of what was only kept too long.
SELECT id FROM receipts WHERE named = '{ttl_days}';


-- reasons --
-- Why rows are hidden, in the words of whoever hid them.
SELECT id, reason FROM hidden WHERE reason <> '' ORDER BY id;


-- recalls --
-- Logged recalls that may be meant; the options are those of `turns`. A question is matched by its words.
SELECT logged.agent_identity, logged.id, logged.query, logged.at
FROM recall_log AS logged
WHERE (%(theme)s::text IS NULL OR logged.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR logged.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR logged.at < %(before)s::timestamptz)
  AND (%(word)s::text IS NULL OR logged.query ~ '[^ \n\r\t!"#$''()+,./0-9:;=?@A-Z^_a-z{|}-]|[-=]\r?\n'
       OR strpos(lower(logged.query COLLATE "C"), %(word)s::text) > 0)
ORDER BY logged.agent_identity, logged.id;


-- receipts --
-- The receipts, newest first; id: null for all.
SELECT id, forgotten_at, actor, home_id, named, counts, left_over FROM receipts
WHERE %(id)s::bigint IS NULL OR id = %(id)s::bigint ORDER BY id DESC LIMIT %(limit)s::integer;


-- set_event --
-- Gives an operation on memories other words, which quote nothing.
UPDATE memory_operations SET content = %(content)s, old_text = '', previous = NULL, metadata = %(metadata)s::jsonb
WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- set_letter --
-- Gives a rejected record another payload.
UPDATE dead_letters SET payload = %(payload)s WHERE id = %(id)s::bigint;


-- set_metadata_of_entry --
-- Gives an entry other metadata.
UPDATE memory_entries SET metadata = %(metadata)s::jsonb WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- set_metadata_of_event --
-- Gives an operation on memories other metadata.
UPDATE memory_operations SET metadata = %(metadata)s::jsonb WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- set_metadata_of_turn --
-- Gives a turn other metadata.
UPDATE conversations SET metadata = %(metadata)s::jsonb WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- set_question --
-- Gives a logged recall another question.
UPDATE recall_log SET query = %(query)s WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- set_reason --
-- Takes the reason off a rule.
UPDATE hidden SET reason = '' WHERE id = %(id)s::bigint;


-- set_turn --
-- Gives a turn other words and metadata; it is still known by the words once said.
UPDATE conversations
SET content = %(content)s, metadata = %(metadata)s::jsonb, digest = coalesce(digest, hermes_turn_digest(role, content))
WHERE agent_identity = %(theme)s AND id = %(id)s::bigint;


-- turns --
-- Turns that may be meant, as rows of one shape: letter, theme, number, session or target, action, words, what else is quoted, metadata, time.
--
-- theme, session_id, before, ids: null for any. authors: what their metadata name as the author; null for any. word: letters
-- and digits that a text has if it holds what is looked for and nothing in it could be written otherwise; null for any.
-- Whether a text holds it is decided by whoever asked, who knows how words can be written.
SELECT 't', turn.agent_identity, turn.id, turn.session_id, 'add', turn.content, ARRAY[turn.before], turn.metadata, turn.ts
FROM conversations AS turn
WHERE (%(theme)s::text IS NULL OR turn.agent_identity = %(theme)s::text)
  AND (%(session_id)s::text IS NULL OR turn.session_id = %(session_id)s::text)
  AND (%(before)s::timestamptz IS NULL OR turn.ts < %(before)s::timestamptz)
  AND (%(ids)s::bigint[] IS NULL OR turn.id = ANY (%(ids)s::bigint[]))
  AND (%(authors)s::text[] IS NULL
       OR EXISTS (SELECT FROM jsonb_path_query(turn.metadata, '$.author.*') AS value
                  WHERE lower(value #>> '{}') = ANY (%(authors)s::text[])))
  AND (%(word)s::text IS NULL OR concat_ws(' ', turn.content, turn.metadata) ~ '[^ \n\r\t!"#$''()+,./0-9:;=?@A-Z^_a-z{|}-]|[-=]\r?\n'
       OR strpos(lower(concat_ws(' ', turn.content, turn.metadata) COLLATE "C"), %(word)s::text) > 0);
