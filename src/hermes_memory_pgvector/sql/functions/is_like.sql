-- Whether a theme is one of those that these patterns mean; reading everywhere, private themes are not.
--
-- Policies ask it. Its cost is next to nothing on paper, and it is no SQL function, which Postgres would expand to what it
-- costs indeed: see policies.sql.
CREATE OR REPLACE FUNCTION hermes_is_like(theme text, patterns text[], is_everywhere boolean) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 0.000001
    AS $$
    BEGIN
        RETURN theme OPERATOR(pg_catalog.~~) ANY (patterns) AND NOT (is_everywhere AND {schema}.hermes_is_private(theme));
    END $$;
