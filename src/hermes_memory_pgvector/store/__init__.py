"""All SQL of the runtime: write items and questions come in, rows and hits go out.

This room, `admin` and `server` are the only ones that use psycopg.
"""
