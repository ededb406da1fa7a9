"""The processes of a database, and the numbers they tell."""
