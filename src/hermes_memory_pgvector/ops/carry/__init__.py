"""What comes in and what goes out: imports, exports, moves to another database, backups."""
