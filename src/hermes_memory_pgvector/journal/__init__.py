"""The durable waiting room between a hook and Postgres."""

from hermes_memory_pgvector.journal.journal import Journal, JournalStats
from hermes_memory_pgvector.journal.reader import Depth, Record
from hermes_memory_pgvector.journal.recovery import ADOPTED_TOGETHER, Adoption
from hermes_memory_pgvector.journal.room import Urgency
from hermes_memory_pgvector.journal.tail import SyncMode

__all__ = ["ADOPTED_TOGETHER", "Adoption", "Depth", "Journal", "JournalStats", "Record", "SyncMode", "Urgency"]
