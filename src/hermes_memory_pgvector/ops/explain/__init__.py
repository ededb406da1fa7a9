"""What recall finds, and why."""
