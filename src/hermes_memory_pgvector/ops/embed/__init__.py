"""The vectors of a database: those that are missing, and another model for all of them."""
