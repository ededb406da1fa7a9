"""`hermes pgvector …`: the same command tree as `hermes-pgvector`, hung into the host's own parser."""


def register_cli(subparser):  # type: ignore[no-untyped-def]
    """Add our commands to the parser that the host made for `hermes pgvector`."""
    from hermes_memory_pgvector.cli import configure

    configure(subparser)


def pgvector_command(args):  # type: ignore[no-untyped-def]
    """Run the chosen command; its exit code becomes the exit code of the host's process."""
    import sys

    from hermes_memory_pgvector.cli import dispatch

    sys.exit(dispatch(args))
