"""Correcting the memory: hiding rows."""
