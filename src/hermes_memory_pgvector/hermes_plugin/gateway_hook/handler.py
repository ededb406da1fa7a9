"""Loads the memory while the gateway is still single-threaded.

The host's loader shows other threads a plugin module before its code has run, so of several first requests arriving
together some would get no memory. The gateway imports this file before it listens; afterwards the module is complete.
"""

from importlib import import_module


def warm() -> None:
    """Load the provider once if this home uses it."""
    memory = import_module("plugins.memory")
    if memory._get_active_memory_provider() == "pgvector":
        memory.load_memory_provider("pgvector")


def handle(event_type: object, context: object) -> None:
    """Nothing left to do when the event comes: importing this file did the work."""


warm()
