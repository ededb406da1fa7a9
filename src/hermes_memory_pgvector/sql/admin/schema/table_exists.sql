-- whether this schema, and not one further along the search_path, has a table of that name
SELECT EXISTS (
    SELECT FROM pg_class WHERE relname = %s AND relnamespace = quote_ident(current_schema())::regnamespace)
