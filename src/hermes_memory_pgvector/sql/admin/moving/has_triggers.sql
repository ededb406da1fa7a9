-- whether rows of a table are changed or counted as they come
SELECT EXISTS (SELECT FROM pg_trigger AS t
               WHERE t.tgrelid = (quote_ident(current_schema()) || '.' || quote_ident(%s))::regclass
                 AND NOT t.tgisinternal AND t.tgname <> 'not_in_use')
