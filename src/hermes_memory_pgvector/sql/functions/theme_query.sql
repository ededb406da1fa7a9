-- What a row's markers must be to be looked at: those of the theme, or those of every row that scope 'all' may see.
CREATE OR REPLACE FUNCTION hermes_theme_query(theme text, all_themes boolean) RETURNS tsquery
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT CASE WHEN NOT all_themes THEN {schema}.hermes_quote_lexeme('~=' || theme)::tsquery
                WHEN {schema}.hermes_is_private(theme)
                THEN '~all'::tsquery || {schema}.hermes_quote_lexeme('~=' || theme)::tsquery
                ELSE '~all'::tsquery END
    $$;
