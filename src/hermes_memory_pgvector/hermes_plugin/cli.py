"""`hermes pgvector …`: the same command tree as `hermes-pgvector`, added to the host's own parser."""

from typing import Any


def register_cli(subparser: Any) -> None:
    """Add our commands to the parser that the host made for `hermes pgvector`."""
    from hermes_memory_pgvector.cli import configure

    configure(subparser)


def pgvector_command(args: Any) -> None:
    """Run the chosen command; its exit code becomes the exit code of the host's process."""
    import sys

    from hermes_memory_pgvector.cli import dispatch

    sys.exit(dispatch(args))
