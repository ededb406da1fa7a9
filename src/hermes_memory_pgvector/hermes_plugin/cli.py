"""`hermes pgvector …`: the same command tree as `hermes-pgvector`, added to the host's own parser."""

from typing import Any


def register_cli(subparser: Any) -> None:
    """Add our commands to the parser that the host made for `hermes pgvector`."""
    import sys
    from pathlib import Path

    folder = Path(__file__).parent
    if (folder / "lib").is_dir() and str(folder / "lib") not in sys.path:
        sys.path.insert(0, str(folder / "lib"))
    from hermes_memory_pgvector import doorway

    doorway.configure(folder, subparser)


def pgvector_command(args: Any) -> None:
    """Run the chosen command; its exit code becomes the exit code of the host's process."""
    import sys
    from pathlib import Path

    from hermes_memory_pgvector import doorway

    sys.exit(doorway.dispatch(Path(__file__).parent, args))
