"""Questions in seven languages find their text among those of all seven: with the local model, through the tool.

Words and meaning work together differently in each language. What is not found is noted, at most two of twenty in a
language; whoever changes the search notes what is lost and found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database
from testing.waiting import wait_until

PAIRS: dict[str, list[tuple[str, str]]] = json.loads(
    (Path(__file__).parents[1] / "data" / "languages.json").read_text(encoding="utf-8")
)
EACH = 20
FIRST = 5
MOST_MISSED = 2
NOTHING: dict[str, list[int]] = {language: [] for language in PAIRS}
BY_WORDS_AND_MEANING = {**NOTHING, "Japanese": [1]}
BY_WORDS_ALONE = {**NOTHING, "Spanish": [15]}
"""Which questions of each language do not have their text among the first five answers, by their number."""


@pytest.fixture
def home(tmp_path: Path, empty_database: Database) -> Iterator[AgentHome]:
    """A home that uses the local model, over a database made by the command."""
    runtime, password = with_password(empty_database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime)
    done = commands.call("migrate", "--admin-dsn", empty_database.owner_dsn)
    assert done.code == 0, done.everything
    made = AgentHome.create(commands.home, empty_database)
    yield made
    made.close()


def missed(home: AgentHome, language: str) -> list[int]:
    """The numbers of the questions that do not find their text."""
    agent = home.provider("marketing", f"asking in {language}")
    numbers = []
    for number, (question, text) in enumerate(PAIRS[language]):
        answer = json.loads(agent.handle_tool_call("recall_memory", {"query": question, "limit": FIRST}))
        if text not in [hit["content"] for hit in answer["results"]]:
            numbers.append(number)
    return numbers


def remember(home: AgentHome) -> list[str]:
    assert {language: len(pairs) for language, pairs in PAIRS.items()} == dict.fromkeys(PAIRS, EACH)
    agent = home.provider("marketing")
    texts = [text for pairs in PAIRS.values() for _, text in pairs]
    for text in texts:
        agent.on_memory_write("add", "memory", text)
    home.settle()
    return texts


def test_what_is_noted_leaves_eighteen_of_twenty_in_each_language() -> None:
    noted = [*BY_WORDS_AND_MEANING.values(), *BY_WORDS_ALONE.values()]
    assert max(map(len, noted)) <= MOST_MISSED


def test_questions_find_their_text_in_every_language(home: AgentHome) -> None:
    home.settings |= {"embed_url": "", "embed_on_write": True}
    texts = remember(home)
    embedded = "SELECT count(embedding) FROM memory_entries_embedded"
    wait_until(lambda: home.stored.rows(embedded) == [(len(texts),)], seconds=60)
    assert {language: missed(home, language) for language in PAIRS} == BY_WORDS_AND_MEANING


def test_questions_find_their_text_in_every_language_by_words_alone(home: AgentHome) -> None:
    """As long as no embedder can be reached, and for whatever has no vector yet."""
    remember(home)
    assert {language: missed(home, language) for language in PAIRS} == BY_WORDS_ALONE
