"""The embedded Postgres of a home: its binaries, its folder, starting, stopping, dumping."""
