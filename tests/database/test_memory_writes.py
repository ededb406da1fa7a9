"""The hook says who and when, the file says what: words that are missing or masked move no entry and double none."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from testing.agent import AgentHome

KEY = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1aXy4z"
PLAIN = "The cellar has forty-four barrels of cider."
ENTRY = f"The build robot signs in with {KEY} on Mondays."
OTHER = "The build robot signs in with its badge on Fridays."
MASKS = {"dots": "sk-pro...Xy4z", "stars": "***", "word": "[redacted]"}


class Chat:
    """Sessions of two themes on one home; each write changes the file first, as the host does."""

    def __init__(self, home: AgentHome) -> None:
        self.home = home
        home.settings["bulk_sync_on_init"] = True
        home.write_memories()
        self.agents = {theme: home.provider(theme, session=theme) for theme in ("marketing", "trading")}
        self.entries: list[str] = []
        self.lock = threading.Lock()

    def write(
        self, theme: str, action: str, hook: str, *, new: Sequence[str] = (), old: str = "", **metadata: Any
    ) -> None:
        """The file loses `old` and gets `new`; the hook says what it says."""
        with self.lock:
            self.entries = [entry for entry in self.entries if entry != old] + list(new)
            self.home.write_memories(*self.entries)
        self.agents[theme].on_memory_write(action, "memory", hook, metadata=metadata)

    def rows(self) -> set[tuple[str, str]]:
        """(theme, content) of what is stored once the files have been compared."""
        self.home.settle()
        self.home.mirror()
        found = self.home.stored.rows("SELECT agent_identity, content FROM memory_entries")
        contents = [content for _, content in found]
        assert len(contents) == len(set(contents)), "an entry is in two themes"
        return {(theme, content.partition(" with ")[0] if KEY[:7] in content else content) for theme, content in found}


@pytest.fixture
def chat(agent_home: AgentHome) -> Chat:
    return Chat(agent_home)


def test_a_batch_whose_hook_has_no_words_stays_in_its_theme(chat: Chat) -> None:
    """hermes-agent 0.20 gives none where the model said `new_text`."""
    chat.write("marketing", "add", "", new=[PLAIN])
    assert chat.rows() == {("marketing", PLAIN)}
    chat.write("marketing", "replace", "", new=[OTHER], old=PLAIN, old_text="forty-four")
    assert chat.rows() == {("marketing", OTHER)}


@pytest.mark.parametrize("named", ["old_text", "previous_content"])
def test_an_entry_is_named_by_its_words_whatever_ends_their_lines(chat: Chat, named: str) -> None:
    """As in a batch that takes back what it has added: the file never shows such an entry."""
    said = "The cellar has forty-four barrels\r\nof cider."
    chat.write("marketing", "add", said)
    chat.write("marketing", "remove", "", **{named: said})
    assert chat.rows() == set()


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masked_words_add_replace_and_remove_the_entry_that_they_mean(chat: Chat, mask: str) -> None:
    masked = ENTRY.replace(KEY, mask)
    chat.write("marketing", "add", masked, new=[ENTRY])
    chat.write("trading", "add", PLAIN, new=[PLAIN])
    stored = {theme for theme, content in chat.rows() if content != PLAIN}
    assert stored == {"marketing"}
    changed = ENTRY.replace("Mondays", "Tuesdays")
    chat.write(
        "marketing", "replace", changed.replace(KEY, mask), new=[changed], old=ENTRY,
        old_text=masked, previous_content=masked,
    )  # fmt: skip
    rows = chat.home.stored.rows
    chat.rows()
    ((theme, content),) = rows("SELECT agent_identity, content FROM memory_entries WHERE content LIKE '%%robot%%'")
    assert (theme, "Tuesdays" in content, KEY in content) == ("marketing", True, False)
    chat.write("marketing", "remove", "", old=changed, old_text=changed.replace(KEY, mask))
    assert chat.rows() == {("trading", PLAIN)}


def test_two_threads_that_write_masked_words_keep_to_their_themes(chat: Chat) -> None:
    together = threading.Barrier(2)

    def work(theme: str) -> None:
        for number in range(20):
            together.wait()
            entry = f"The {theme} robot number {number} signs in with {KEY} on Mondays."
            chat.write(theme, "add", entry.replace(KEY, MASKS["dots"]), new=[entry])

    threads = [threading.Thread(target=work, args=(theme,)) for theme in chat.agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chat.rows()
    found = chat.home.stored.rows("SELECT agent_identity, content FROM memory_entries")
    assert len(found) == 40
    assert all(content.startswith(f"The {theme} robot") for theme, content in found)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masked_batches_of_two_threads_keep_to_their_themes(chat: Chat, mask: str) -> None:
    """Each adds an entry, replaces the one before, and removes the one before that; the file changes at once."""
    together = threading.Barrier(2)

    def entry(theme: str, number: int, day: str = "Mondays") -> str:
        return f"The {theme} robot number {number} signs in with {KEY} on {day}."

    def work(theme: str) -> None:
        hook = chat.agents[theme].on_memory_write

        def shown(words: str) -> str:
            return words.replace(KEY, mask)

        for number in range(10):
            together.wait()
            new, older, oldest = entry(theme, number), entry(theme, number - 1), entry(theme, number - 2, "Fridays")
            changed = entry(theme, number - 1, "Fridays")
            with chat.lock:
                chat.entries = [each for each in chat.entries if each not in (older, oldest)]
                chat.entries += [new, changed] if number else [new]
                chat.home.write_memories(*chat.entries)
            hook("add", "memory", shown(new), metadata={})
            if number:
                said = {"old_text": f"robot number {number - 1} ", "previous_content": shown(older)}
                hook("replace", "memory", shown(changed), metadata=said)
            if number > 1:
                hook("remove", "memory", "", metadata={"old_text": shown(oldest), "previous_content": shown(oldest)})

    threads = [threading.Thread(target=work, args=(theme,)) for theme in chat.agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chat.rows()
    found = chat.home.stored.rows("SELECT agent_identity, content FROM memory_entries")
    assert sorted((theme, content.partition(" number ")[2][:1]) for theme, content in found) == [
        ("marketing", "8"), ("marketing", "9"), ("trading", "8"), ("trading", "9")
    ]  # fmt: skip
    assert all(content.startswith(f"The {theme} robot") and KEY not in content for theme, content in found)


def test_plain_words_open_no_file(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(chat.home.engine.mirror.news), "_read", lambda *_: pytest.fail("a file was opened"))
    chat.agents["marketing"].on_memory_write("add", "memory", PLAIN, metadata={})
    chat.agents["marketing"].on_memory_write("remove", "memory", "", metadata={"old_text": "barrels"})


def test_where_the_file_cannot_be_read_the_hook_is_believed(chat: Chat) -> None:
    path = chat.home.path / "memories" / "MEMORY.md"
    path.unlink()
    path.mkdir()
    chat.agents["marketing"].on_memory_write("add", "memory", "The robot signs in with *** today.", metadata={})
    chat.home.settle()
    assert chat.home.stored.memories("marketing") == [("memory", "The robot signs in with *** today.")]
