"""Every error this package raises, as one tree.

MemoryPluginError
├── ConfigError            a setting is wrong; the message names it
├── Held                   it is not certain which database is meant: nothing is stored until the operator has acted
├── SchemaError            the database is not ready; the message ends with the command to run
├── DatabaseError
│   ├── DatabaseUnavailable    passes by itself: try again later
│   ├── DatabaseRejected       this statement's data is at fault: trying again cannot help
│   └── DatabaseDenied         configuration or permission: hold, tell, try again rarely
├── EmbeddingError
│   ├── EmbeddingUnavailable   passes by itself
│   ├── EmbeddingRejected      the endpoint answers, but not with usable vectors
│   └── EmbeddingMisconfigured a setting of the embedder is wrong; the message names it
├── JournalError
│   └── JournalFull            the bound is reached; the write was refused, not lost silently
├── ThreadUnavailable      the system has no thread to give, or the interpreter is ending
├── CareError              an operator named something that is not there, or asked for what cannot be done
├── UsageError             options that do not go together, or lack a value; the message says what to type
├── ServerError            the embedded Postgres could not be started or found
└── DeadlineExceeded       the time given for the whole operation is over

A foreign exception crosses exactly one border, where it becomes one of these; messages carry class names,
SQLSTATEs, ids and sizes, never content, passwords or a driver's own text.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

OUTLINE_FRAMES = 6
PACKAGE_NAME = __name__.partition(".")[0]


class MemoryPluginError(Exception):
    """Something in the memory plugin failed."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class ConfigError(MemoryPluginError):
    """The configuration is not valid."""


class Held(MemoryPluginError):
    """The database is left alone until the operator has said which one is meant."""


class SchemaError(MemoryPluginError):
    """The database schema is missing or does not fit; run: hermes-pgvector migrate"""


class DatabaseError(MemoryPluginError):
    """Postgres could not do what was asked."""

    def __init__(self, message: str | None = None, *, sqlstate: str | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.kind = kind
        """Why no connection could be made, in a word or two, or whom it concerns; see postgres/connect_failure.py."""


class DatabaseUnavailable(DatabaseError):
    """Postgres cannot be reached or is busy; the operation may be tried again."""


class DatabaseRejected(DatabaseError):
    """Postgres refused this data; trying again cannot help."""


class DatabaseDenied(DatabaseError):
    """Postgres refused this role or this statement; the configuration needs attention."""


class EmbeddingError(MemoryPluginError):
    """The text could not be turned into a vector."""


class EmbeddingUnavailable(EmbeddingError):
    """The embedding endpoint cannot be reached or is busy."""


class EmbeddingRejected(EmbeddingError):
    """The embedding endpoint answered with something that is not a usable vector."""


class EmbeddingMisconfigured(EmbeddingError):
    """A setting of the embedder is wrong."""


class JournalError(MemoryPluginError):
    """The journal could not take the write."""


class JournalFull(JournalError):
    """The journal has reached its bound; the write was refused."""


class ThreadUnavailable(MemoryPluginError):
    """no thread can be started"""


class CareError(MemoryPluginError):
    """What was asked for is not there, or cannot be done; the message says what can."""


class UsageError(MemoryPluginError):
    """The command line does not make sense; the message says what to type."""


class ServerError(MemoryPluginError):
    """The embedded Postgres server could not be started."""


class DeadlineExceeded(MemoryPluginError):
    """The time given for this operation is over."""


def outline(error: BaseException) -> str:
    """An error for a log line: our own sentence, or class and place of one whose text may be content."""
    if isinstance(error, MemoryPluginError):
        return str(error)
    frames = [
        (PurePath(frame.f_code.co_filename), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    # Our own steps, and the one where it happened.
    steps = [each for each in frames[:-1] if PACKAGE_NAME in each[0].parts] + frames[-1:]
    places = [f"{path.name}:{line} {name}" for path, line, name in steps[-OUTLINE_FRAMES:]]
    return f"unexpected {type(error).__name__} ({' > '.join(places)})"
