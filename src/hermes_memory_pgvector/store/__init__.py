"""Everything that speaks SQL at run time: pool, statements, memories, turns, search, schema checks, upkeep."""
