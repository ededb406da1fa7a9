"""Changing entries of MEMORY.md and USER.md the way the host does: under its lock, in its format, all at once.

Only what is named changes; every other byte stays. Where an entry no longer stands as it was shown, no file is changed,
and the error names the path and the line.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.text.clean import entries_of, plain_lines
from hermes_memory_pgvector.text.secrets import NOTHING, Masker

LOCK_SECONDS: Final = 10.0
"""The host holds its lock for milliseconds."""
_BETWEEN = re.compile(r"((?:\r\n|\n|\r)§(?:\r\n|\n|\r))")
_BYTES: Final = {"encoding": "utf-8", "errors": "surrogateescape"}
_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class Standing:
    """An entry, and the line of the file that it begins in."""

    path: Path
    line: int
    content: str

    @property
    def place(self) -> str:
        """Where it stands, for a person."""
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """An entry as it was shown, and what stands there instead; None takes it out."""

    standing: Standing
    new: str | None


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What is exchanged in one file, and how its entries are read."""

    path: Path
    changes: Sequence[Exchange]
    max_chars: int
    masker: Masker = NOTHING


def standing(path: Path, max_chars: int, masker: Masker = NOTHING) -> list[Standing]:
    """The entries of a file, each as it is stored; none for a file that is not there."""
    if not path.is_file():
        return []
    return [each for each, _ in _placed(path, _pieces(_text(path)), max_chars, masker)]


@contextlib.contextmanager
def edited(edits: Sequence[FileEdit]) -> Iterator[None]:
    """Exchange or take out entries of files, all of it or nothing: an error in the block puts the files back, too.

    Where an entry no longer stands as it was shown, nothing is done, and the error says where.
    """
    with contextlib.ExitStack() as locks:
        end = time.monotonic() + LOCK_SECONDS
        for path in sorted({each.path for each in edits}):
            locks.enter_context(_locked(path, end))
        begun: list[_Rewrite] = []
        is_done = False
        try:
            for each in [_rewrite(each) for each in edits]:
                begun.append(each)
                with _told(each.path):
                    is_written = each.write()
                if not is_written:
                    begun.pop()
                    raise _changed(each.first)
            yield
            is_done = True
        finally:
            if not is_done:
                _put_back(begun)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """A file as it was seen, and what it is to say."""

    path: Path
    real: Path
    seen: files.Signature
    before: bytes
    after: bytes
    first: Standing

    def write(self) -> bool:
        """False where the file is no longer as it was seen."""
        return self._replace(self.after, self.seen)

    def put_back(self) -> bool:
        """Whether the file says again what it said before."""
        now = files.signature(self.real)
        if now == self.seen:
            return True
        return now is not None and self.real.read_bytes() == self.after and self._replace(self.before, now)

    def _replace(self, content: bytes, seen: files.Signature) -> bool:
        return files.replace(
            self.real, content, owner=files.owner_of(self.real), mode=self.real.stat().st_mode & 0o777,
            only_if=lambda: files.signature(self.real) == seen,
        )  # fmt: skip


def _rewrite(edit: FileEdit) -> _Rewrite:
    """What a file is to say, for the holder of its lock."""
    first, real = edit.changes[0].standing, edit.path.resolve()
    seen = files.signature(real)
    if seen is None:
        raise _changed(first)
    with _told(edit.path):
        text = _text(real)
    pieces = _pieces(text)
    new: list[str | None] = [*pieces]
    found: dict[str, list[int]] = {}
    unnamed = set()
    for each, place in _placed(edit.path, pieces, edit.max_chars, edit.masker):
        found.setdefault(each.content, []).append(place)
        if all(each != change.standing for change in edit.changes):
            unnamed.add(place)
    for change in edit.changes:
        places = found.get(change.standing.content)
        if not places:
            raise _changed(change.standing)
        if unnamed.intersection(places) and len({_plain(pieces[place]) for place in places}) > 1:
            raise CareError(
                f"{change.standing.place}: another entry differs from this one only in what is not stored, and "
                "nothing was done; change it in the file"
            )
        # The host takes a second copy for the same entry.
        for place in places if change.new is None else places[1:]:
            new[place] = None
        if change.new is not None:
            new[places[0]] = _instead(pieces[places[0]], change.new)
    after = (_BOM if pieces[0].startswith(_BOM) else "") + _joined(new)
    return _Rewrite(edit.path, real, seen, text.encode(**_BYTES), after.encode(**_BYTES), first)


def _put_back(begun: Sequence[_Rewrite]) -> None:
    """CareError for files that have to stay as they are now."""
    lost = []
    for each in begun:
        try:
            if not each.put_back():
                lost.append(each)
        except OSError:
            lost.append(each)
    if lost:
        where = ", ".join(str(each.path) for each in lost)
        raise CareError(f"{where}: changed, but the rest was not done, and it could not be put back; look at it")


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the system refuses, as an error that names the file."""
    try:
        yield
    except OSError as error:
        raise CareError(f"{path} cannot be changed ({error.strerror}), and nothing was done") from None


def _changed(standing: Standing) -> CareError:
    return CareError(f"{standing.place}: the file has changed meanwhile, and nothing was done; look at it again")


def _text(path: Path) -> str:
    return path.read_bytes().decode(**_BYTES)


def _pieces(text: str) -> list[str]:
    """Entries and what stands between them, by turns; together they are the text."""
    return _BETWEEN.split(text)


def _placed(path: Path, pieces: Sequence[str], max_chars: int, masker: Masker) -> Iterator[tuple[Standing, int]]:
    line = 1
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            for content in entries_of(piece, max_chars):
                yield Standing(path, line + _lines(_before(piece)), masker.mask(content).text), place
        line += _lines(piece)


def _lines(text: str) -> int:
    return text.count("\n") + text.replace("\r\n", "\n").count("\r")


def _before(piece: str) -> str:
    """The blanks that an entry begins with, and the mark of the encoding that a file may begin with."""
    return piece[: len(piece) - len(piece.removeprefix(_BOM).lstrip())]


def _plain(piece: str) -> str:
    """An entry as the host reads it."""
    return plain_lines(piece.removeprefix(_BOM).strip())


def _instead(piece: str, new: str) -> str:
    """An entry's piece with other words, between the same blanks."""
    return _before(piece) + new + piece[len(piece.rstrip()) :]


def _joined(pieces: Sequence[str | None]) -> str:
    """The text again, without the entries that were taken out and the delimiter before each."""
    kept: list[str] = []
    for place in range(0, len(pieces), 2):
        piece = pieces[place]
        if piece is not None:
            between = pieces[place - 1] if kept else ""
            kept += [between or "", piece]
    return "".join(kept).removeprefix(_BOM)


@contextlib.contextmanager
def _locked(path: Path, end: float) -> Iterator[None]:
    """Hold the host's lock on a file of its memory."""
    with _told(path):
        handle = os.open(path.with_suffix(f"{path.suffix}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with contextlib.suppress(OSError):
            files.give(handle, files.owner_of(path.parent))
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise CareError(f"hermes is writing {path}, and nothing was done; run it again") from None
                time.sleep(0.05)
        yield
    finally:
        os.close(handle)
