"""DDL, with the owner's login: migrations, model tables, indexes. Nothing at run time imports this room."""
