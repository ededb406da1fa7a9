"""The durable queue between hooks and Postgres.

Comes in: payloads of write items. Goes out: the same payloads in order, until Postgres has stored them.
"""

from hermes_memory_pgvector.journal.appender import SyncMode, Urgency
from hermes_memory_pgvector.journal.journal import Journal, JournalStats
from hermes_memory_pgvector.journal.reader import Depth, Reader, Record
from hermes_memory_pgvector.journal.retention import Adoption
from hermes_memory_pgvector.journal.segment import FIRST_POSITION, file_number

__all__ = [
    "FIRST_POSITION",
    "Adoption",
    "Depth",
    "Journal",
    "JournalStats",
    "Reader",
    "Record",
    "SyncMode",
    "Urgency",
    "file_number",
]
