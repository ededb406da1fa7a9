"""Looking into a memory: lists, single rows with all that is known of them, what is at work."""
