"""What an operator can do: an operation is declared once, and is a command, a JSON document and a route of the page.

    SHOW = Operation("show", "show one row", (Option("name", "m12, t34", required=True),), show, examples=(…,))

`run` takes the operation's subject (here: a memory) and the options by name, and answers in one of four shapes:

    Page    rows of a list, and where the next page begins
    Plan    a change, before or after it was made; the binding adds `--execute`, without which nothing changes
    Facts   a dataclass of its own: what is known of one thing, with lists of dataclasses as tables
    Stream  rows that come one after the other, until there are no more or somebody presses Ctrl-C

What takes its time answers with a Course: the steps, each told when it is done, and one of these at their end.

The fields of an answer say how they look: `column`, `body` and `aside` declare them. Whatever is not an `aside` is in
the JSON. What an answer is, not what it says, decides the exit code: its `exit_code`, 0 where it has none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Any, Final, Literal

from hermes_memory_pgvector.errors import CareError, ConfigError, MemoryPluginError, UsageError
from hermes_memory_pgvector.terminal.fields import aside

Mark = Literal["ok", "warning", "problem", "note"]
PROGRAM: Final = "hermes-pgvector"
WORK_REMAINS: Final = 3
OK, BAD, MISSING, CHANGED, UNAVAILABLE = 200, 400, 404, 409, 503
MOST_CHARS: Final = 4000
"""No value in a request is longer."""
DIGEST_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Option:
    """An option or an argument, read by the same function on the command line and in a request."""

    name: str
    """With two dashes in front, or without for an argument."""
    help: str
    parse: Callable[[str], Any] = str
    default: Any = None
    choices: Sequence[str] = ()
    is_flag: bool = False
    many: bool = False
    required: bool = False
    metavar: str = ""
    on_page: bool = True
    """Whether a request may use it, too."""
    also: str = ""
    """For an argument that need not be there: an option that stands for it, and that no help lists."""
    show: Callable[[Any], str] = str
    """How a value is printed for whoever types it again: what is secret in it is left out."""

    @property
    def key(self) -> str:
        """The name of the parameter that it becomes."""
        return self.name.lstrip("-").replace("-", "_")

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declare it on the command line."""
        if self.is_flag:
            parser.add_argument(self.name, action="store_true", help=self.help)
            return
        shape: dict[str, Any] = {"help": self.help, "type": self._typed, "metavar": self.metavar or None}
        if self.choices:
            shape |= {"choices": tuple(self.choices), "metavar": self.metavar or "|".join(self.choices)}
        if self.name.startswith("--"):
            shape |= {"default": self.default, "required": self.required}
            shape |= {"action": "append"} if self.many else {}
        elif self.many:
            shape |= {"nargs": "+" if self.required else "*"}
        elif not self.required:
            shape |= {"nargs": "?", "default": argparse.SUPPRESS if self.also else self.default}
        if self.also:
            unlisted = {"help": argparse.SUPPRESS, "type": self._typed, "default": self.default}
            parser.add_argument(self.also, dest=self.key, **unlisted)
        parser.add_argument(self.name, **shape)

    def read(self, given: Mapping[str, Any]) -> Any:
        """Its value in a request."""
        if self.key not in given:
            if self.required:
                raise UsageError(f"{self.key} is missing")
            return False if self.is_flag else [] if self.many else self.default
        value = given[self.key]
        if self.is_flag:
            if value not in (True, False, "true", "false"):
                raise UsageError(f"{self.key} is true or false")
            return value in (True, "true")
        texts = value if self.many and isinstance(value, list) else [value]
        read = [self._checked(each) for each in texts]
        return read if self.many else read[0]

    def typed(self, value: Any) -> list[str]:
        """A value as somebody types it again; nothing for one that need not be typed."""
        if value is None or value is False or value == [] or value == self.default:
            return []
        if self.is_flag:
            return [self.name]
        words = [self.show(each) for each in (value if self.many else [value])]
        return [word for each in words for word in (self.name, each)] if self.name.startswith("--") else words

    def _typed(self, text: str) -> Any:
        try:
            return self.parse(text)
        except (UsageError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    def _checked(self, value: Any) -> Any:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(text, str) or len(text) > MOST_CHARS or "\x00" in text or not _is_storable(text):
            raise UsageError(f"{self.key} is not a text of at most {MOST_CHARS} characters")
        try:
            read = self.parse(text)
        except (UsageError, ValueError) as error:
            raise UsageError(f"{self.key}: {error}") from None
        if self.choices and read not in self.choices:
            raise UsageError(f"{self.key} is one of {', '.join(self.choices)}")
        return read


EXECUTE: Final = Option("--execute", "do it; without this, only show what would change", is_flag=True)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that can be done, and all its doors need to know of it."""

    name: str
    help: str
    """One line without a full stop."""
    options: Sequence[Option]
    run: Callable[..., Any]
    examples: Sequence[tuple[str, str]]
    """Each without the program's name, and what it does."""
    group: str = "see"
    changes: bool = False
    """Whether it answers with a Plan, and takes `execute`."""
    acts: bool = False
    """Whether it changes something at once."""
    on_page: bool = True
    is_listed: bool = True
    """Whether help and the reference name it; what is not listed works all the same."""
    needs_home: bool = True
    """Whether the home has to be there already."""
    names_home: bool = False
    """Whether commands that it prints name their home in any case: pasted into another shell, they work on no other."""
    aliases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Names that no help lists: each with the options that it stands for."""

    @property
    def all_options(self) -> Sequence[Option]:
        """The declared ones, and `--execute` where something changes."""
        return (*self.options, EXECUTE) if self.changes else self.options

    @property
    def method(self) -> str:
        """How a request asks for it."""
        return "POST" if self.changes or self.acts else "GET"

    def typed(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The words that ask for it again, without `--execute`."""
        return (self.name, *(word for each in self.options for word in each.typed(given.get(each.key))))


# -- what operations answer with


def command(*words: str) -> str:
    """A command of ours for the reader to run."""
    return shlex.join([PROGRAM, *words])


@dataclass(frozen=True, slots=True)
class Note:
    """A line below an answer: what needs attention, and how to mend it."""

    mark: Mark
    text: str
    hint: str = ""
    then: str | None = None
    """The command that helps; it stands after the hint."""
    took: float | None = None
    """The seconds that a step took."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a list, and where the next page begins; None when this is the last."""

    rows: Sequence[Any]
    next: str | None = None
    notes: Sequence[Note] = ()
    empty: str = aside("Nothing is stored for this.")


@dataclass(frozen=True, slots=True)
class Plan:
    """A change before or after it was made."""

    verb: str = aside()
    """What a dry run would do."""
    done: str = aside()
    """What was done."""
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[Any] = ()
    executed: bool = False
    notes: Sequence[Note] = ()
    left: Sequence[Note] = ()
    """What is not done, and who can do it."""

    @property
    def exit_code(self) -> int:
        """3 where work remains."""
        return WORK_REMAINS if self.left else 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one thing; a dataclass of its own says what, with `column`, `body` and lists of rows."""


class Raw(Facts):
    """Facts for a program that reads a format of its own."""

    __slots__ = ()

    def as_text(self) -> str:
        """In that format."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows that come one after the other."""

    rows: Iterator[Any]
    is_endless: bool = False
    """Whether Ctrl-C is its regular end."""


@dataclass(frozen=True, slots=True)
class Course:
    """Steps that are told to whoever watches, and the answer at their end, which is all that is in the JSON.

    A text among the steps is a heading.
    """

    steps: Generator[Note | str, None, Any]


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses as mappings, times in UTC."""
    if is_dataclass(value) and not isinstance(value, type):
        shown = [each.name for each in fields(value) if "aside" not in each.metadata]
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


# -- how a request reaches an operation


def answer(
    operations: Sequence[Operation], subject: Any, method: str, name: str, parameters: Mapping[str, Any]
) -> tuple[int, Any]:
    """A status and a document, for `GET` or `POST` with the name of an operation.

    Whoever confirms a plan sends back the `digest` of its dry run, so that what is done is what was shown.
    """
    found = next((each for each in operations if each.name == name and each.on_page), None)
    if found is None or found.method != method:
        return MISSING, {"detail": "There is nothing here."}
    try:
        return _asked(found, subject, parameters)
    except (UsageError, ConfigError) as error:
        return BAD, {"detail": sentence(error)}
    except CareError as error:
        return MISSING, {"detail": sentence(error)}
    except MemoryPluginError as error:
        return UNAVAILABLE, {"detail": sentence(error)}


def sentence(error: Exception) -> str:
    """An error as a sentence of its own."""
    text = str(error).strip() or type(error).__name__
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _asked(operation: Operation, subject: Any, parameters: Mapping[str, Any]) -> tuple[int, Any]:
    known = {each.key: each for each in operation.all_options if each.on_page}
    unknown = sorted(parameters.keys() - known.keys() - ({"digest"} if operation.changes else set()))
    if unknown:
        raise UsageError(f"{operation.name} takes no {unknown[0]!r}")
    given = {each.key: each.read(parameters if each.on_page else {}) for each in operation.all_options}
    if not operation.changes:
        return OK, plain(operation.run(subject, **given))
    planned = plain(operation.run(subject, **{**given, "execute": False}))
    digest = _digest(planned)
    if not given["execute"]:
        return OK, {**planned, "digest": digest}
    if parameters.get("digest") != digest:
        detail = "This is not what was shown: look at it again."
        return CHANGED, {**planned, "digest": digest, "detail": detail}
    return OK, plain(operation.run(subject, **given))


def _digest(planned: Any) -> str:
    text = json.dumps(planned, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def _is_storable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)
