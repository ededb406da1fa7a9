"""The rows follow the host's real memory tool, whether its writes are announced or happen behind our back."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tools.memory_tool import MemoryStore

from hermes_memory_pgvector.mirror import mirror
from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.agent import AgentHome
from testing.postgres import Database, new_database

TARGETS = st.sampled_from(("memory", "user"))
THEMES = st.sampled_from(("marketing", "trading"))
PROFILE = "hermes"
WORDS = ("barrel", "cellar", "100%", "a_b", "it's", "c:\\x", "§", "Ärger", "two\nlines", "x\n§\ny")
CONTENTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
PARTS = st.sampled_from((*WORDS, "bar", "%", "_", "\\", "'"))
_numbers = itertools.count(1)


class Mirrored(RuleBasedStateMachine):
    """One home: the tool writes its files, two themes announce some of it, nobody announces the rest."""

    database: Database

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="mirror-"))
        self.home = AgentHome.create(self.folder / "home", self.database)
        self.before = os.environ.get("HERMES_HOME")
        os.environ["HERMES_HOME"] = str(self.home.path)
        self.tool = MemoryStore(memory_char_limit=400, user_char_limit=300)
        self.tool.load_from_disk()
        # Which themes hold each entry of the file.
        self.themes: dict[str, dict[str, set[str]]] = {"memory": {}, "user": {}}
        # Entries announced while another theme held them: whether that one found them in the file just before decides
        # whether it goes on holding them.
        self.claimed: dict[tuple[str, str], str] = {}

    @initialize()
    def empty_database(self) -> None:
        tables = "memory_entries, memory_operations, memory_files, journal_writers, dead_letters"
        with psycopg.connect(self.database.owner_dsn, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {tables} CASCADE".encode())

    def file(self, target: str) -> list[str]:
        """The entries as the tool itself reads them."""
        fresh = MemoryStore(memory_char_limit=400, user_char_limit=300)
        fresh.load_from_disk()
        return list(fresh.memory_entries if target == "memory" else fresh.user_entries)

    def follow(self, target: str, before: list[str], announced: str | None) -> None:
        """What the model expects after the file went from `before` to what it is now."""
        now, themes = self.file(target), self.themes[target]
        gone = [content for content in before if content not in now]
        new = [content for content in now if content not in before]
        holders = [themes.pop(content) for content in gone]
        for place, content in enumerate(new):
            if announced is not None:
                themes[content] = {announced}
            elif len(gone) == len(new) and before.index(gone[place]) == now.index(content):
                themes[content] = holders[place]
            else:
                themes[content] = {PROFILE}

    def claim(self, target: str, theme: str, content: str, before: list[str]) -> None:
        """A theme says what the file already had: it holds the entry too."""
        for part in (each.strip() for each in content.split("\n§\n")):
            if part in before and part in self.file(target):
                self.claimed[target, part] = theme
                self.themes[target][part].add(theme)

    @rule(kind=TARGETS, theme=st.none() | THEMES, content=CONTENTS)
    def add(self, kind: str, theme: str | None, content: str) -> None:
        before = self.file(kind)
        if self.tool.add(kind, content)["success"]:
            if theme is not None:
                self.announce(theme, "add", kind, content)
                self.claim(kind, theme, content, before)
            self.follow(kind, before, theme)

    @rule(kind=TARGETS, theme=st.none() | THEMES, old=PARTS, content=CONTENTS)
    def replace(self, kind: str, theme: str | None, old: str, content: str) -> None:
        before = self.file(kind)
        if self.tool.replace(kind, old, content)["success"]:
            if theme is not None:
                self.announce(theme, "replace", kind, content, old)
                self.claim(kind, theme, content, before)
            self.follow(kind, before, theme)

    @rule(kind=TARGETS, theme=st.none() | THEMES, old=PARTS)
    def remove(self, kind: str, theme: str | None, old: str) -> None:
        before = self.file(kind)
        if self.tool.remove(kind, old)["success"]:
            if theme is not None:
                self.announce(theme, "remove", kind, "", old)
            self.follow(kind, before, theme)

    # Within a batch the tool still takes an entry with a delimiter in it for one; the file, and we, for two.
    @rule(kind=TARGETS, theme=THEMES, content=CONTENTS.filter(lambda content: "\n§\n" not in content))
    def batch_that_takes_back_what_it_adds(self, kind: str, theme: str, content: str) -> None:
        before = self.file(kind)
        steps = [{"action": "add", "content": content}, {"action": "remove", "old_text": content}]
        if content.strip() not in before and self.tool.apply_batch(kind, steps)["success"]:
            self.announce(theme, "add", kind, content)
            self.announce(theme, "remove", kind, "", content)
            self.follow(kind, before, theme)

    @rule(kind=TARGETS)
    def reset(self, kind: str) -> None:
        before = self.file(kind)
        (self.home.path / "memories" / ("MEMORY.md" if kind == "memory" else "USER.md")).unlink(missing_ok=True)
        self.follow(kind, before, None)

    @rule()
    def restart(self) -> None:
        """The process ends and another one begins."""
        self.home.close()

    def announce(self, theme: str, action: str, target: str, content: str, old: str | None = None) -> None:
        metadata: dict[str, Any] = {} if old is None else {"old_text": old}
        self.home.provider(theme).on_memory_write(action, target, content, metadata=metadata)

    @invariant()
    def rows_equal_files(self) -> None:
        self.home.provider("marketing")
        self.home.settle()
        self.home.mirror()
        for target in ("memory", "user"):
            found: dict[str, set[str]] = {}
            for theme, content in self.home.stored.rows(
                "SELECT agent_identity, content FROM memory_entries WHERE target = %s", target
            ):
                found.setdefault(content, set()).add(theme)
            for (kind, content), theme in self.claimed.items():
                if kind == target and {theme} <= found.get(content, set()) <= self.themes[target].get(content, set()):
                    self.themes[target][content] = found[content]
            assert found == self.themes[target], f"{target}: the file has {self.file(target)}"
        self.claimed.clear()

    def teardown(self) -> None:
        self.home.close()
        if self.before is None:
            del os.environ["HERMES_HOME"]
        else:
            os.environ["HERMES_HOME"] = self.before
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def shared_database(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    with new_database(postgres_server, template=migrated_template.name) as made:
        yield made


def test_rows_follow_the_real_memory_tool(shared_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    machine = type("Machine", (Mirrored,), {"database": shared_database})
    run_state_machine_as_test(machine, settings=settings(max_examples=15, stateful_step_count=12))


@pytest.mark.large
@pytest.mark.timeout(1800)
def test_rows_follow_the_real_memory_tool_for_long(shared_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "QUIET_SECONDS", 0.0)
    machine = type("Machine", (Mirrored,), {"database": shared_database})
    run_state_machine_as_test(
        machine, settings=settings(settings.get_profile("search"), max_examples=150, stateful_step_count=30)
    )
