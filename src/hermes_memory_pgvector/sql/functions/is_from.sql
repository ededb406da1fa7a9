-- Whether a row comes from what somebody names: an origin, a kind of tool the turn used, or a degree of trust.
CREATE OR REPLACE FUNCTION hermes_is_from(origin text, trust text, metadata jsonb, named text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT coalesce(origin = named, false) OR coalesce(trust = named, false) OR coalesce(metadata -> 'tools' ? named, false) $$;
