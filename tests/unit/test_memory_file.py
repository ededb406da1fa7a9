"""The memory files as the host writes them, and what changed between two readings."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes_memory_pgvector.mirror.memory_file import MAX_FILE_BYTES, compare, read
from hermes_memory_pgvector.text.clean import entries_of

ENTRY = st.sampled_from([f"entry {n}" for n in range(6)])
FILE = st.lists(ENTRY, unique=True, max_size=6)


def test_entries_are_split_on_the_section_sign_alone_on_its_line() -> None:
    assert entries_of("one\n§\ntwo § inline\nsecond line\n§\n\n§\none", 1000) == ["one", "two § inline\nsecond line"]


def test_a_mark_of_the_byte_order_is_no_part_of_an_entry(tmp_path: Path) -> None:
    """Some editors write one, and the host leaves it out."""
    file = tmp_path / "MEMORY.md"
    file.write_bytes("\ufeffone\n§\ntwo".encode())
    assert read(file, 100) == ["one", "two"]
    file.write_bytes("\ufeff".encode())
    assert read(file, 100) == []


def test_a_missing_file_is_empty_only_while_its_folder_is_there(tmp_path: Path) -> None:
    assert read(tmp_path / "MEMORY.md", 100) == []
    assert read(tmp_path / "gone" / "MEMORY.md", 100) is None


def test_a_link_to_a_disk_that_is_away_says_nothing(tmp_path: Path) -> None:
    share, file = tmp_path / "share", tmp_path / "MEMORY.md"
    share.mkdir()
    (share / "MEMORY.md").write_text("one", encoding="utf-8")
    file.symlink_to(share / "MEMORY.md")
    assert read(file, 100) == ["one"]
    share.rename(tmp_path / "away")
    assert read(file, 100) is None


def test_a_file_in_another_encoding_says_nothing(tmp_path: Path) -> None:
    """The Windows editor calls it Unicode; read as UTF-8 it would be one entry in place of two."""
    for encoding in ("utf-16", "utf-16-be", "utf-32"):
        mark = "\ufeff" if encoding == "utf-16-be" else ""
        (tmp_path / "MEMORY.md").write_bytes(f"{mark}one\n§\ntwo".encode(encoding))
        assert read(tmp_path / "MEMORY.md", 100) is None


def test_what_a_theme_has_announced_is_not_added_again() -> None:
    assert compare([], ["n"], {"n": ["marketing"]}, "hermes") == []


@given(
    before=FILE,
    now=FILE,
    held=st.dictionaries(ENTRY, st.lists(st.sampled_from(["x", "y"]), min_size=1, max_size=2, unique=True)),
)
def test_the_changes_make_the_rows_equal_to_the_file(
    before: list[str], now: list[str], held: dict[str, list[str]]
) -> None:
    rows = {(theme, content) for content, themes in held.items() for theme in themes}
    for change in compare(before, now, held, "own"):
        if change.old is not None:
            rows.remove((change.theme, change.old))
        if change.new is not None:
            rows.add((change.theme, change.new))
    # What was there before and has lost its row is no news.
    assert {content for _, content in rows} == {each for each in now if each in held or each not in before}


def test_a_pipe_and_a_huge_file_hold_nothing_that_can_be_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "MEMORY.md")
    assert read(tmp_path / "MEMORY.md", 100) is None
    with (tmp_path / "USER.md").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert read(tmp_path / "USER.md", 100) is None


def test_very_many_entries_are_compared_without_looking_for_edits() -> None:
    before = [f"old {number}" for number in range(20_000)]
    now = [f"new {number}" for number in range(20_000)]
    began = time.process_time()
    changes = compare(before, now, {content: ["x"] for content in before}, "own")
    assert time.process_time() - began < 10
    assert len(changes) == 40_000
