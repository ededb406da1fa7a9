"""Entries of MEMORY.md are changed under the host's lock, and every other byte stays."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
from tools.memory_tool import MemoryStore

from hermes_memory_pgvector import files
from hermes_memory_pgvector.errors import CareError, JournalError
from hermes_memory_pgvector.mirror import edit_file
from hermes_memory_pgvector.mirror.edit_file import Exchange, FileEdit, Standing, edited, standing
from hermes_memory_pgvector.text.secrets import NOTHING, Masker

MOST = 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "MEMORY.md"


def edit(path: Path, changes: list[Exchange], most: int, masker: Masker = NOTHING) -> None:
    with edited([FileEdit(path, changes, most, masker)]):
        pass


def change(path: Path, **changes: str | None) -> None:
    """Exchange entries by their first words."""
    found = {each.content.split()[0]: each for each in standing(path, MOST)}
    edit(path, [Exchange(found[name], new) for name, new in changes.items()], MOST)


def test_other_entries_stay_byte_for_byte(path: Path) -> None:
    before, after = "\ufeff  One is here \r\n§\r\n\t", "  \n§\n\n§\nThree § inline\n§\nFour \udc80\n"
    path.write_bytes(f"{before}Two\r\nlines{after}".encode("utf-8", "surrogateescape"))
    assert [(each.line, each.content[:5]) for each in standing(path, MOST)] == [
        (1, "One i"), (3, "Two\nl"), (8, "Three"), (10, "Four "),
    ]  # fmt: skip
    change(path, Two="Two is\none")
    assert path.read_bytes() == f"{before}Two is\none{after}".encode("utf-8", "surrogateescape")
    change(path, One=None, Four="Four")
    assert path.read_bytes() == "\ufeff\tTwo is\none  \n§\n\n§\nThree § inline\n§\nFour\n".encode()
    change(path, Two=None, Three=None, Four=None)
    assert path.read_bytes().strip() == "\ufeff".encode()
    assert standing(path, MOST) == []


def test_the_host_reads_what_was_written(path: Path) -> None:
    entries = ["Ships on Monday", "Two\nlines", "Ships on Monday", "Last"]
    MemoryStore._write_file(path, entries)
    mode = path.stat().st_mode
    change(path, Ships="Ships on Tuesday")
    assert MemoryStore._read_file(path) == ["Ships on Tuesday", "Two\nlines", "Last"]
    assert path.read_text() == "Ships on Tuesday\n§\nTwo\nlines\n§\nLast"
    assert path.stat().st_mode == mode
    change(path, Last=None)
    assert path.read_text() == "Ships on Tuesday\n§\nTwo\nlines"
    assert sorted(each.name for each in path.parent.iterdir()) == ["MEMORY.md", "MEMORY.md.lock"]


def test_entries_that_differ_in_what_is_not_stored_are_not_taken_for_one(path: Path) -> None:
    first, second = (f"The key is ghp_{letter * 36}" for letter in "ab")
    for entries, most, masker in (
        ((first, second), MOST, Masker()),
        (("Long " * 40 + "one", "Long " * 40 + "two"), 100, NOTHING),
    ):
        text = "\n§\n".join((*entries, "Last"))
        path.write_text(text)
        one, two, _ = standing(path, most, masker)
        assert one.content == two.content
        for new in (None, "New"):
            with pytest.raises(CareError, match="line 1: another entry"):
                edit(path, [Exchange(one, new)], most, masker)
            assert path.read_text() == text
        edit(path, [Exchange(one, None), Exchange(two, None)], most, masker)
        assert path.read_text() == "Last"


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.md"
    real.write_text("One")
    path.symlink_to(real)
    change(path, One="Two")
    assert path.is_symlink()
    assert real.read_text() == "Two"


def test_a_file_that_has_changed_is_left_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("One\n§\nTwo")
    one, two = standing(path, MOST)
    path.write_text("One\n§\nOther")
    with pytest.raises(CareError, match=r"MEMORY\.md, line 3: the file has changed"):
        edit(path, [Exchange(one, "New"), Exchange(two, None)], MOST)
    assert path.read_text() == "One\n§\nOther"
    # An editor that takes no lock writes at the worst moment.
    text = edit_file._text

    def read(real: Path) -> str:
        found = text(real)
        path.write_text("Written by an editor")
        return found

    monkeypatch.setattr(edit_file, "_text", read)
    with pytest.raises(CareError, match="the file has changed"):
        edit(path, [Exchange(one, "New")], MOST)
    assert path.read_text() == "Written by an editor"
    path.unlink()
    with pytest.raises(CareError, match="the file has changed"):
        edit(path, [Exchange(Standing(path, 1, "One"), None)], MOST)


def test_the_lock_is_the_hosts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_file, "LOCK_SECONDS", 0.1)
    path.write_text("One")
    with MemoryStore._file_lock(path), pytest.raises(CareError, match="hermes is writing"):
        change(path, One="Two")
    change(path, One="Two")
    handle = os.open(path.with_name("MEMORY.md.lock"), os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def both(path: Path) -> list[FileEdit]:
    """MEMORY.md and USER.md, and a change of each."""
    user = path.with_name("USER.md")
    for each in (path, user):
        each.write_text("One\n§\nTwo")
    return [FileEdit(each, [Exchange(standing(each, MOST)[1], "New")], MOST) for each in (path, user)]


def test_files_change_together_or_not_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = both(path)
    memory, user = (each.path for each in edits)
    monkeypatch.setattr(edit_file, "LOCK_SECONDS", 0.1)
    seen = files.signature(memory)
    with MemoryStore._file_lock(user), pytest.raises(CareError, match=r"hermes is writing .*USER\.md"), edited(edits):
        pass
    user.write_text("One")
    with pytest.raises(CareError, match=r"USER\.md, line 3: the file has changed"), edited(edits):
        pass
    assert files.signature(memory) == seen
    edits = both(path)
    with edited(edits):
        assert memory.read_text() == user.read_text() == "One\n§\nNew"
    edits = both(path)
    with pytest.raises(JournalError), edited(edits):
        raise JournalError
    assert memory.read_text() == user.read_text() == "One\n§\nTwo"


def test_what_was_written_first_is_put_back_when_the_next_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = both(path)
    memory, user = (each.path for each in edits)
    real = files.replace
    editing = [user]

    def replace(at: Path, *given: Any, **named: Any) -> bool:
        """An editor that takes no lock writes at the worst moment."""
        if at == user:
            for each in editing:
                each.write_text("Written by an editor")
        return real(at, *given, **named)

    monkeypatch.setattr(files, "replace", replace)
    with pytest.raises(CareError, match=r"USER\.md, line 3: the file has changed"), edited(edits):
        pass
    assert (memory.read_text(), user.read_text()) == ("One\n§\nTwo", "Written by an editor")
    # Into the first file, too: whose words to keep is for a person to say.
    edits = both(path)
    editing.append(memory)
    with pytest.raises(CareError, match=r"MEMORY\.md: changed, .* could not be put back"), edited(edits):
        pass
    assert memory.read_text() == "Written by an editor"
    edits = both(path)
    user.unlink()
    user.mkdir()
    with pytest.raises(CareError, match=r"USER\.md cannot be changed \(Is a directory\)"), edited(edits):
        pass
    assert memory.read_text() == "One\n§\nTwo"
