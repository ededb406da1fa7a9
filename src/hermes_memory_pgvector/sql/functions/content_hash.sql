-- Equal for equal texts: lets a search fold identical turns without reading them. Stored in the vector tables.
CREATE OR REPLACE FUNCTION hermes_content_hash(content text) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT pg_catalog.hashtextextended(content, 0) $$;
