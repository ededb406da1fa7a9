"""The memory tab's API in the host's dashboard: the routes are the installed package's."""

from hermes_memory_pgvector.provider.dashboard import router as router
