-- The markers of a theme's rows.
CREATE OR REPLACE FUNCTION hermes_theme_lexemes(theme text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$ SELECT array_to_tsvector(CASE WHEN hermes_is_private(theme) THEN ARRAY['~=' || theme]
                                        ELSE ARRAY['~=' || theme, '~all'] END) $$;
