"""How hermes-agent finds the pgvector memory: calls register_memory_provider() and holds nothing.

The memory itself is the package in lib/; what it needs beside the host lies in the home, where `up` put it.
"""

from typing import Any


def register(ctx: Any) -> None:
    """Give the host a fresh provider, or a stand-in that says which library is missing."""
    import sys
    from pathlib import Path

    folder = Path(__file__).parent
    if (folder / "lib").is_dir() and str(folder / "lib") not in sys.path:
        sys.path.insert(0, str(folder / "lib"))
    from hermes_memory_pgvector import doorway

    ctx.register_memory_provider(doorway.provider(folder))
