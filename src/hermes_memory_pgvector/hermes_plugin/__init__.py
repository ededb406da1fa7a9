"""How hermes-agent finds the pgvector memory: calls register_memory_provider() and holds nothing.

The memory itself is the installed package hermes_memory_pgvector; this folder may be copied or replaced at any time.
"""

from typing import Any


def register(ctx: Any) -> None:
    """Give the host a fresh provider; without the package, say how to get it and leave the host as it is."""
    try:
        from hermes_memory_pgvector.provider import PgvectorMemoryProvider
    except ImportError as error:
        import logging
        import sys

        logging.getLogger("hermes_memory_pgvector").warning(
            "The pgvector memory is off: no module %s; run start.py again, or: hermes-pgvector up --hermes-python %s",
            error.name,
            sys.executable,
        )
        return
    ctx.register_memory_provider(PgvectorMemoryProvider())
