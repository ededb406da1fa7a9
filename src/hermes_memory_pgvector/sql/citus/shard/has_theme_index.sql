-- Shards have no approximate indexes of single themes.
CREATE OR REPLACE FUNCTION hermes_has_theme_index(vectors regclass, theme text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT false $$;
