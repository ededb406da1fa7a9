-- Whether a row lies within the bounds of a rule of `hidden`; null bounds nothing.
CREATE OR REPLACE FUNCTION hermes_is_within(
    in_theme text, in_session text, from_origin text, since timestamptz, until timestamptz,
    theme text, session_id text, origin text, trust text, metadata jsonb, at timestamptz) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (in_theme IS NULL OR theme = in_theme) AND (in_session IS NULL OR session_id = in_session)
       AND (from_origin IS NULL OR hermes_is_from(origin, trust, metadata, from_origin))
       AND (since IS NULL OR at >= since) AND (until IS NULL OR at < until);
