"""Times as people type and read them, for commands that declare their own options."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from hermes_memory_pgvector.errors import UsageError
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.parse import FORMS as FORMS


def moment(text: str) -> datetime:
    """Parse a time; a date is its first instant."""
    try:
        return parse.moment(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def end(text: str) -> datetime:
    """Parse a time that ends something; a date includes its whole day."""
    try:
        return parse.end(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the two ends of a time."""
    parser.add_argument("--since", type=moment, metavar="TIME", help=f"only from then on: {FORMS}; UTC")
    parser.add_argument("--until", type=end, metavar="TIME", help="only before then; a date includes its whole day")


def shown(at: datetime) -> str:
    """A time as the tables show it, to the second, UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def utc(at: datetime) -> datetime:
    """The same moment, as UTC tells it."""
    return at.astimezone(UTC)
