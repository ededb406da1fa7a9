"""The memory tab's API in the host's dashboard: the routes are the package's in lib/."""

from typing import Any


def _routes() -> Any:
    import sys
    from pathlib import Path

    folder = Path(__file__).parent.parent
    if (folder / "lib").is_dir() and str(folder / "lib") not in sys.path:
        sys.path.insert(0, str(folder / "lib"))
    from hermes_memory_pgvector import carried

    carried.activate(carried.home_of(folder))
    from hermes_memory_pgvector.provider.dashboard import router

    return router


# The dashboard imports this file once, at its start, and looks for the router in it.
router = _routes()
