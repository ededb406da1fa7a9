-- What put a turn there; of turns from before that was noted, the role tells.
--
-- The cases name the role each time: Citus garbles the short form on the way to its workers.
CREATE OR REPLACE FUNCTION hermes_origin_of_turn(origin text, role text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(origin, CASE WHEN role = 'tool' THEN 'delegation' WHEN role = 'system' THEN 'unknown' ELSE role END) $$;
