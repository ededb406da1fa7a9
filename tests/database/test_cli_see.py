"""list, show, themes, sessions, transcript, tail and history, as an operator runs them."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from docs.pages import page

from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store import memories
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.values import AddMemory, MemoryOperation, Moment, Origin, RemoveMemory, ReplaceMemory
from testing.command import Commands, Finished, with_password
from testing.postgres import MODEL, Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes

TURNS = """
INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, metadata, parent_session_id) VALUES
    ('market', 101, 's1', 'user', 'Where do we moor the pilot boat?', '2026-03-01 10:00Z', '{}', 's0'),
    ('market', 102, 's1', 'assistant', E'At the northern quay.\\nBeside the \\x1b[31mfuel barge.', '2026-03-01 10:01Z', '{}', NULL),
    ('market', 103, 's1', 'tool', 'Delegated: tides', '2026-03-01 10:03Z', '{"delegated_to": "child-1"}', NULL),
    ('market', 104, 's2', 'user', 'Another day, another question about the harbour', '2026-03-05 08:00Z', '{}', NULL),
    ('garden', 105, 's1', 'user', 'The other theme uses the same session id', '2026-03-04 08:00Z', '{}', NULL),
    ('dm-77', 106, 'p', 'user', 'Private words', '2026-03-02 08:00Z', '{}', NULL);
"""  # noqa: E501


def minute(number: int) -> Moment:
    at = (1_772_000_000 + 60 * number) * 1_000_000
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("market", "memory", "Prices rise in spring", minute(1), "home-a", metadata={"session_id": "s1"}),
    AddMemory("market", "user", "Likes tea", minute(2), "home-a", Origin.FILE),
    ReplaceMemory("market", "memory", "Prices fall in spring", "Prices rise", minute(3), "home-a"),
    AddMemory("garden", "memory", "Roses need sun", minute(4), "home-b"),
    AddMemory("market", "memory", "To be forgotten", minute(5), "home-a"),
    RemoveMemory("market", "memory", "forgotten", minute(6), "home-a"),
]


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """One database for all: these commands change nothing."""
    with new_database(postgres_server, template=migrated_template.name) as database:
        with psycopg.connect(database.owner_dsn) as owner:
            owner.execute(TURNS)
            for number, operation in enumerate(OPERATIONS, start=1):
                memories.store(owner, [Placed(operation, "writer", number, 0)])
            owner.execute("INSERT INTO hidden (id, rule, actor) VALUES (7, 'muted', 'somebody')")
            owner.execute("UPDATE conversations SET hidden_by = 7 WHERE id = 104")
        yield database


@pytest.fixture
def commands(filled: Database, tmp_path: Path) -> Commands:
    runtime, password = with_password(filled.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_model=MODEL, ttl_days="history=0")
    return made


@pytest.fixture(autouse=True)
def only_looking(filled: Database) -> Iterator[None]:
    with nothing_changes(Stored(filled.owner_dsn)):
        yield


def contents(done: Finished) -> list[str]:
    assert done.code == 0, done
    return [str(row["content"]) for row in done.json["rows"]]


def test_list_shows_memories_and_turns_newest_first(commands: Commands) -> None:
    done = commands.call("list", "--json")
    assert contents(done)[:3] == [
        "Another day, another question about the harbour", "The other theme uses the same session id", "Private words",
    ]  # fmt: skip
    assert len(done.json["rows"]) == 9
    assert done.json["next"] is None
    first = done.json["rows"][0]
    assert {
        "kind": "turn", "id": "t104", "agent_identity": "market", "session_id": "s2", "whose": "user",
        "state": "hidden",
    }.items() <= first.items()  # fmt: skip
    assert first["hidden_by"] is not None
    out = commands.call("list").out
    assert "t104" in out
    assert "hidden" in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_list_narrows_by_theme_kind_and_time(commands: Commands) -> None:
    assert contents(commands.call("list", "memories", "--theme", "market", "--json")) == [
        "Prices fall in spring", "Likes tea",
    ]  # fmt: skip
    assert contents(commands.call("list", "turns", "--theme", "garden", "--json")) == [
        "The other theme uses the same session id"
    ]
    within = commands.call("list", "turns", "--since", "2026-03-02", "--until", "2026-03-04", "--json")
    assert contents(within) == ["The other theme uses the same session id", "Private words"]
    assert contents(commands.call("list", "hidden", "--json")) == ["Another day, another question about the harbour"]
    assert contents(commands.call("list", "turns", "--since", "7d", "--json")) == []


@pytest.mark.parametrize("what", ["", "turns", "memories", "sessions", "events", "themes", "hidden", "audit"])
def test_pages_of_any_size_are_the_whole_list_once(commands: Commands, what: str) -> None:
    words = ("list", *filter(None, (what,)))
    whole = commands.call(*words, "--limit", "100", "--json").json["rows"]
    for size in ("1", "2"):
        seen: list[Any] = []
        page: list[str] = []
        while True:
            done = commands.call(*words, "--limit", size, "--json", *page).json
            seen += done["rows"]
            if done["next"] is None:
                break
            assert f"next page: --page {done['next']}" in commands.call(*words, "--limit", size, *page).out
            page = ["--page", done["next"]]
        assert seen == whole
    assert commands.call("list", "turns", "--page", "xyz").code == 2


def test_a_theme_is_named_or_near_ones_are(commands: Commands) -> None:
    for words in (("list", "--theme", "makret"), ("list", "sessions", "--theme", "makret")):
        done = commands.call(*words)
        assert done.code == 1
        assert "there is no theme 'makret'; did you mean market?" in done.err
    assert "`list themes` shows them" in commands.call("list", "--theme", "zzzzzzzzz").err


def test_themes_count_rows_and_say_who_is_private(commands: Commands) -> None:
    found = {row["theme"]: row for row in commands.call("list", "themes", "--json").json["rows"]}
    assert {name: (row["memories"], row["turns"], row["is_private"]) for name, row in found.items()} == {
        "market": (2, 4, False), "garden": (1, 1, False), "dm-77": (0, 1, True),
    }  # fmt: skip
    assert found["market"]["new_today"] == 0, "their rows tell of March"
    assert "next page: --page market" in commands.call("list", "themes", "--limit", "1").out


def test_sessions_of_all_themes_last_used_first(commands: Commands) -> None:
    whole = commands.call("list", "sessions", "--json").json["rows"]
    assert [(row["theme"], row["session_id"], row["turns"], row["delegations"]) for row in whole] == [
        ("market", "s2", 1, 0), ("garden", "s1", 1, 0), ("dm-77", "p", 1, 0), ("market", "s1", 3, 1),
    ]  # fmt: skip
    assert whole[3]["begins_with"] == "Where do we moor the pilot boat?"
    within = commands.call("list", "sessions", "--since", "2026-03-02", "--until", "2026-03-04", "--json").json["rows"]
    assert [row["session_id"] for row in within] == ["s1", "p"]
    assert commands.call("list", "sessions", "--since", "1d").out == "Nothing is stored for this.\n"


def test_a_session_reads_in_order_with_its_subagents(commands: Commands) -> None:
    done = commands.call("show", "s1")
    assert done.code == 1
    assert "--theme garden or --theme market" in done.err
    out = commands.call("show", "s1", "--theme", "market").out
    parts = "continues", "2026-03-01", "moor", "northern quay", "Delegated: tides", "show child-1"
    places = [out.index(part) for part in parts]
    assert places == sorted(places)
    assert "\x1b" not in out
    document = commands.call("show", "s1", "--theme", "market", "--json").json
    assert [turn["id"] for turn in document["turns"]] == ["t101", "t102", "t103"]
    assert document["delegated_to"][0]["child_session_id"] == "child-1"
    page = commands.call("show", "s1", "--theme", "market", "--limit", "2", "--json").json
    rest = commands.call("show", "s1", "--theme", "market", "--page", page["next"], "--json").json
    assert [turn["id"] for turn in rest["turns"]] == ["t103"]
    assert "there is no session nope" in commands.call("show", "nope").err


def test_show_tells_all_about_a_memory(commands: Commands, filled: Database) -> None:
    ((number,),) = Stored(filled.owner_dsn).rows("SELECT id FROM memory_entries WHERE content LIKE 'Prices%%'")
    shown = commands.call("show", f"m{number}", "--json").json
    assert (shown["kind"], shown["content"], shown["homes"]) == ("memory", "Prices fall in spring", {"home-a": "tool"})
    told = [(event["action"], event["session_id"]) for event in shown["history"]]
    assert told == [("add", "s1"), ("replace", None)]
    assert shown["vector"] == {"model": MODEL, "vectors": 0, "state": f"none of {MODEL}; `reembed` makes it"}
    out = commands.call("show", f"m{number}").out
    assert "home home-a (by tool)" in out
    assert "Prices rise → Prices" in out


def test_show_tells_all_about_a_turn(commands: Commands) -> None:
    shown = commands.call("show", "t104", "--json").json
    assert (shown["session_id"], shown["role"], shown["vector"]["state"]) == ("s2", "user", "none while hidden")
    assert "hermes-pgvector mute --undo 7" in commands.call("show", "104").out
    for wrong, told in (("t9999", "there is no turn t9999"), ("x", "no session x"), ("t104", "in theme garden")):
        done = commands.call("show", wrong, "--theme", "garden")
        assert done.code == 1
        assert told in done.err


def test_show_tells_both_wordings_of_an_event(commands: Commands) -> None:
    shown = commands.call("show", "e3", "--json").json
    assert (shown["old_text"], shown["content"], shown["kind"]) == ("Prices rise", "Prices fall in spring", "event")
    assert "hermes-pgvector undo e3" in commands.call("show", "e3").out
    assert "there is no event e99" in commands.call("show", "e99").err
    assert "there is no rejected record d9" in commands.call("show", "d9").err


def test_history_tells_every_change_newest_first(commands: Commands) -> None:
    events = commands.call("history", "--json").json["rows"]
    assert [(event["agent_identity"], event["action"], event["by"]) for event in events] == [
        ("market", "remove", "tool"), ("market", "add", "tool"), ("garden", "add", "tool"),
        ("market", "replace", "tool"), ("market", "add", "file"), ("market", "add", "tool"),
    ]  # fmt: skip
    assert (events[3]["old_text"], events[3]["content"]) == ("Prices rise", "Prices fall in spring")
    assert commands.call("list", "events", "--since", "1d", "--json").json["rows"] == []
    assert "e6" in commands.call("list", "events").out
    assert commands.call("list", "events", "--json").json["rows"] == events


def test_following_begins_with_the_last_rows_and_ends_cleanly(commands: Commands) -> None:
    process = commands.start("list", "turns", "--follow", "--json", "--limit", "2", "--theme", "market")
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [line["id"] for line in lines] == ["t103", "t104"]
    process.send_signal(signal.SIGINT)
    done = commands.finish(process)
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("words", [("why",), ("list",), ("status",), ("recall", "prices"), ("doctor",)], ids=" ".join)
def test_json_has_the_keys_of_the_reference(commands: Commands, words: tuple[str, ...]) -> None:
    told = re.search(rf"^\| `{words[0]}` \| (.+) \|$", page("docs/reference/json.md").text, re.MULTILINE)
    assert told is not None
    assert set(commands.call(*words, "--json").json) == set(re.findall(r"`(\w+)`", told[1]))


def test_what_a_command_would_ignore_is_refused_also_for_scripts(commands: Commands) -> None:
    for words, said in (
        (("list", "hidden", "--origin", "web"), "list hidden does not go with --origin"),
        (("list", "sessions", "--origin", "web"), "list sessions does not go with --origin"),
        (("mute", "t101", "--since", "1d"), "name rows (m12, t34), or say which"),
        (("recall", " "), "Give a query"),
        (("config", "set", "prefetch_limit", "many"), "prefetch_limit expects a whole number"),
        (("config", "get", "prefetch_limt"), "did you mean prefetch_limit?"),
    ):
        done = commands.call(*words, "--json")
        assert (done.code, said in done.err, said in done.json["error"]) == (2, True, True), (words, done)


def test_an_empty_name_does_not_mean_everything(commands: Commands) -> None:
    for words in (
        ("export", "--theme", ""),
        ("import", "x.jsonl", "--theme", " "),
    ):
        done = commands.run(*words)
        assert (done.code, done.out) == (2, ""), (words, done)
        assert "it is empty" in done.err


def test_a_theme_that_does_not_exist_is_no_silent_success(commands: Commands, tmp_path: Path) -> None:
    for words in (
        ("export", "--output", str(tmp_path / "out.jsonl")),
        ("scan",),
        ("history",),
        ("why",),
    ):
        done = commands.call(*words, "--theme", "markt")
        assert (done.code, "there is no theme 'markt'; did you mean market?" in done.err) == (1, True), (words, done)
    assert not (tmp_path / "out.jsonl").exists()
