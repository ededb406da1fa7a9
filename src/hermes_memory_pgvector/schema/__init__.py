"""DDL, with the owner's login: migrations, model tables, functions, indexes. Nothing at run time imports this room."""
