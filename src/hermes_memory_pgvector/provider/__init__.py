"""What hermes calls.

The host builds `PgvectorMemoryProvider` for every request and calls its hooks; each hook hands over to another room and
returns. Comes in: the host's arguments. Goes out: write items for the journal, text and JSON for the model.
"""

from hermes_memory_pgvector.provider.provider import PgvectorMemoryProvider

__all__ = ["PgvectorMemoryProvider"]
