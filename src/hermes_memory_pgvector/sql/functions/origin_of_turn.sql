-- What put a turn there; of turns from before that was noted, the role tells.
CREATE OR REPLACE FUNCTION hermes_origin_of_turn(origin text, role text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(origin, CASE role WHEN 'tool' THEN 'delegation' WHEN 'system' THEN 'unknown' ELSE role END) $$;
