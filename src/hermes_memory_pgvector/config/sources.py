"""What config.yaml and .env of a home say, believed only when it makes sense.

Other programs rewrite these files, and not all of them atomically: a reader may find a file that is empty, cut off or
gone for a moment, and a crash may leave it so. A file that cannot be read or has lost all our settings changes nothing:
the last good configuration stays in use, the one this process knows or else the one an earlier process has saved. A
file that has merely lost something is believed once nobody has touched it for a moment.
"""

from __future__ import annotations

import hashlib
import io
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import yaml
from dotenv import dotenv_values

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config import last_good
from hermes_memory_pgvector.config.last_good import LastGood
from hermes_memory_pgvector.errors import ConfigError

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.2
"""A file that has lost something is believed when nobody has touched it for this long."""
TROUBLE_SECONDS = 1.0
"""A file that makes no sense for this long is broken, not just being rewritten."""
RETRY_SECONDS = 0.02
ENVIRONMENT = "environment"
"""The layer of settings that come from variables."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UTF_32 = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


Sections = Mapping[str, Mapping[str, Any]]


class _Digested(Protocol):
    @property
    def digest(self) -> str: ...


T = TypeVar("T", bound=_Digested)


@dataclass(frozen=True, slots=True)
class Document:
    """What settings need from config.yaml."""

    digest: str
    sections: Sections = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    ends: bool = True
    is_missing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the file says nothing at all."""
        return not self.names


@dataclass(frozen=True, slots=True)
class Variables:
    """What .env sets; None for a value that is not known."""

    digest: str
    values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Belief(Generic[T]):
    """What we believe a file says, and what is wrong with it now."""

    value: T | None
    trouble: str = ""


class Watched(Generic[T]):
    """One file that others rewrite."""

    def __init__(
        self,
        path: Path,
        interpret: Callable[[bytes | None], T],
        doubt: Callable[[T, T], str],
        loses: Callable[[T, T], bool],
    ) -> None:
        self.path = path
        self._interpret = interpret
        self._doubt = doubt
        self._loses = loses
        self._lock = threading.Lock()
        self._value: T | None = None
        self._signature: files.Signature | None = None
        self._kept: T | None = None
        """What was saved on disk when this process last believed the file."""
        self._seen: tuple[files.Signature | None, float] | None = None
        self._candidate: tuple[T, float] | None = None
        """What the file seems to say, and since when every look has agreed."""
        self._doubted_at: float | None = None

    def read(self, kept: T | None, patience: float | None) -> Belief[T]:
        """What the file says; waits up to `patience` while it is being rewritten, with None only for a first answer."""
        begun = time.monotonic()
        while True:
            with self._lock:
                if self._value is not None and files.signature(self.path) == self._signature:
                    self._doubted_at = self._seen = self._candidate = None
                    return Belief(self._value)
                belief, is_final = self._judge(kept)
            known = 0.0 if belief.value is not None else 2 * QUIET_SECONDS
            if is_final or time.monotonic() - begun >= (known if patience is None else patience):
                return belief
            time.sleep(RETRY_SECONDS)

    def believe(self, value: T, signature: files.Signature | None) -> None:
        """Believe this value: we have written it ourselves, or the operator has accepted it."""
        with self._lock:
            self._set(value, signature, None)

    def accept(self) -> str:
        """Believe the file as it is, whatever it has lost; returns why when it cannot be read."""
        with self._lock:
            seen = files.look(self.path)
            if seen.problem or not seen.is_steady:
                return f"{self.path} {seen.problem or 'is being rewritten'}"
            try:
                value = self._interpret(None if seen.signature is None else seen.data)
            except ConfigError as error:
                return f"{self.path} {error}"
            self._set(value, seen.signature, None)
            return ""

    @property
    def digest(self) -> str:
        """The digest of the content this process believes."""
        return "" if self._value is None else self._value.digest

    def _judge(self, kept: T | None) -> tuple[Belief[T], bool]:
        """What to believe now, and whether that is final or waiting might change it."""
        now = time.monotonic()
        self._doubted_at = now if self._doubted_at is None else self._doubted_at
        seen = files.look(self.path)
        old = kept if self._value is None else self._value
        if self._seen is None or self._seen[0] != seen.signature:
            self._seen = (seen.signature, now)
        trouble, value = self._made_of(seen, old, kept)
        if value is not None and not trouble:
            self._set(value, seen.signature, kept)
            return Belief(value), True
        unseen = seen.signature is not None and seen.age >= TROUBLE_SECONDS and seen.is_steady
        is_certain = bool(trouble) and (unseen or now - self._doubted_at >= TROUBLE_SECONDS)
        if old is None:
            return Belief(None, trouble or f"{self.path} is being rewritten"), is_certain
        return Belief(old, trouble if is_certain else ""), is_certain

    def _made_of(self, seen: files.Look, old: T | None, kept: T | None) -> tuple[str, T | None]:
        """What is wrong with a look, or its value if we can already believe it."""
        if not seen.is_steady:
            return "", None
        if seen.problem:
            return f"{self.path} {seen.problem}", None
        try:
            value = self._interpret(None if seen.signature is None else seen.data)
        except ConfigError as error:
            return f"{self.path} {error}", None
        if old is None:
            return "", value if seen.signature is None or self._is_quiet(seen, value) else None
        is_accepted = kept is not None and kept is not self._kept and value.digest == kept.digest
        if is_accepted or value.digest == old.digest:
            return "", value
        trouble = self._doubt(old, value)
        if trouble:
            return f"{self.path} {trouble}", None
        return "", None if self._loses(old, value) and not self._is_quiet(seen, value) else value

    def _is_quiet(self, seen: files.Look, value: T) -> bool:
        """Whether nobody has touched the file for a moment, or every look has shown the same."""
        now = time.monotonic()
        before = self._candidate
        if before is None or self._loses(before[0], value):
            self._candidate = before = (value, now)
        assert self._seen is not None
        return seen.age >= QUIET_SECONDS or now - min(self._seen[1], before[1]) >= QUIET_SECONDS

    def _set(self, value: T, signature: files.Signature | None, kept: T | None) -> None:
        self._value, self._signature, self._kept = value, signature, kept
        self._doubted_at = self._seen = self._candidate = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of a home's configuration that comes from files."""

    sections: Sections
    variables: Mapping[str, str | None]
    troubles: tuple[str, ...] = ()
    withheld: frozenset[str] = frozenset()
    is_known: bool = True
    """False when nothing can be read and nothing was ever saved."""
    document: Document | None = None
    """config.yaml, if this process has read it itself."""


class Configuration:
    """The configuration files of one home, as one process sees them."""

    def __init__(
        self, home: Path, folder: Path, section_names: tuple[str, ...], uses: Callable[[Sections], frozenset[str]]
    ) -> None:
        self._folder = folder
        self._section_names = section_names
        self._uses = uses
        """Which variables of .env the settings depend on."""
        self._used: frozenset[str] = frozenset()
        self.document = Watched(home / "config.yaml", self.interpret, _doubt_document, _loses_document)
        self.variables = Watched(home / ".env", _variables, self._doubt_variables, _loses_variables)
        self._kept: tuple[files.Signature | None, LastGood | None, Document | None, Variables | None]
        self._kept = (None, None, None, None)
        self._told: tuple[str, str] = ("", "")

    @property
    def variables_digest(self) -> str:
        """The digest of .env as we believe it."""
        return self.variables.digest

    def interpret(self, data: bytes | None) -> Document:
        """config.yaml from its bytes; ConfigError says what is wrong with them."""
        if data is None:
            return Document("", is_missing=True)
        document = parse_yaml(data)
        names = set(map(str, document))
        sections: dict[str, Mapping[str, Any]] = {}
        for dotted in self._section_names:
            node: Any = document
            for part in dotted.split("."):
                node = node.get(part) if isinstance(node, Mapping) else None
            if isinstance(node, Mapping):
                sections[dotted] = {str(key): value for key, value in node.items()}
                names.update(f"{dotted}.{key}" for key in node)
        return Document(_digest(data), sections, frozenset(names), data.endswith((b"\n", b"\r", b"...")))

    def read(self, patience: float | None) -> Reading:
        """The current configuration; logs once when it is not what the files say."""
        good, kept_document, kept_variables = self.kept()
        document = self.document.read(kept_document, patience)
        if document.value is not None:
            self._used = self._uses(document.value.sections)
        variables = self.variables.read(kept_variables, patience)
        troubles = tuple(each for each in (document.trouble, variables.trouble) if each)
        is_known = document.value is not None and variables.value is not None
        self._tell((document.trouble, variables.trouble), is_known=is_known)
        is_kept = document.value is kept_document and kept_document is not None
        withheld: frozenset[str] = frozenset()
        if good is not None:
            # Sections come from config.yaml, variables from .env.
            from_file, from_env = is_kept, variables.value is kept_variables
            withheld = frozenset(
                name for name in good.withheld if (from_env if name.startswith(ENVIRONMENT) else from_file)
            )
        return Reading(
            sections={} if document.value is None else document.value.sections,
            variables={} if variables.value is None else variables.value.values,
            troubles=troubles,
            withheld=withheld,
            is_known=is_known,
            document=None if is_kept else document.value,
        )

    def kept(self) -> tuple[LastGood | None, Document | None, Variables | None]:
        """What an earlier process has saved; the same objects as long as the file is the same."""
        now = files.signature(self._folder / last_good.FILE_NAME)
        if now != self._kept[0]:
            good = last_good.load(self._folder)
            if good is None:
                self._kept = (now, None, None, None)
            else:
                document = Document(good.digest, good.sections, good.names, good.ends, not good.digest)
                self._kept = (now, good, document, Variables(good.variables_digest, good.variables))
        return self._kept[1:]

    def _doubt_variables(self, old: Variables, new: Variables) -> str:
        lost = sorted(name for name in old.values if name not in new.values and name in self._used)
        if not lost or new.values:
            return ""
        return f"is {'gone' if not new.digest else 'empty'}, but settings need {', '.join(lost)} from it"

    def _tell(self, troubles: tuple[str, str], *, is_known: bool) -> None:
        """Log one line when a file becomes unreadable, and one when it can be read again."""
        before, self._told = self._told, troubles
        meanwhile = "the last good settings stay in force" if is_known else "nothing is stored in any database"
        for was, trouble in zip(before, troubles, strict=True):
            if trouble and not was:
                logger.warning("%s; %s until it is fixed", trouble, meanwhile)
        if any(before) and not any(troubles):
            logger.warning("the configuration can be read again")


def parse_yaml(data: bytes) -> dict[str, Any]:
    """A mapping from the bytes of a YAML file; ConfigError says what they are instead."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(data.decode("utf-8-sig"), Loader=loader)  # noqa: S506 - both are safe loaders
    except UnicodeDecodeError:
        raise ConfigError("is not in UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError("is not valid YAML") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError("does not hold a mapping")
    return document


def _doubt_document(old: Document, new: Document) -> str:
    """Why a readable file is not believed: it has lost all our settings."""
    had = sorted(name for name, section in old.sections.items() if section)
    if not had:
        return ""
    if new.is_missing:
        return "is gone"
    if new.is_empty:
        return "is empty, but was not before"
    if not any(name in new.sections for name in had):
        return f"has lost its section {' and '.join(had)}"
    lost = sorted(old.names - new.names)
    if old.ends and not new.ends and lost:
        return f"ends in the middle of a line and has lost {', '.join(lost)}"
    return ""


def _loses_document(old: Document, new: Document) -> bool:
    return not old.names <= new.names or (old.ends and not new.ends)


def _loses_variables(old: Variables, new: Variables) -> bool:
    return not old.values.keys() <= new.values.keys()


def _variables(data: bytes | None) -> Variables:
    """.env as the host reads it: UTF-8, else Latin-1, and what Windows editors write."""
    if data is None:
        return Variables("")
    if data.startswith(_UTF_32):
        raise ConfigError("is not in UTF-8")
    try:
        text = data.decode("utf-16" if data.startswith(_UTF_16) else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    found = dotenv_values(stream=io.StringIO(text.replace("\x00", "")))
    return Variables(_digest(data), {name: value for name, value in found.items() if value is not None})


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
