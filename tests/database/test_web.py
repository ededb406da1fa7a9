"""What the memory page asks, and what it gets, from a real database. What operations answer has tests of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.web import access, routes
from testing.command import with_password
from testing.postgres import MODEL, Database
from testing.stored import Stored
from testing.unchanged import nothing_changes
from testing.waiting import wait_until

pytestmark = pytest.mark.postgres

SCRIPT = "<script>window.broken = true</script> ![x](http://evil.example/x.png) \u202egnirts"
NOW = datetime.now(UTC)


@pytest.fixture
def home(database: Database, tmp_path: Path) -> Iterator[Path]:
    runtime, _ = with_password(database.runtime_dsn)
    settings = {"dsn": runtime, "embed_model": MODEL, "embed_url": "http://127.0.0.1:9/"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"memory": {"pgvector": settings}}), encoding="utf-8")
    with psycopg.connect(database.owner_dsn) as owner:
        for number, (days, untrusted, content) in enumerate(
            ((0, False, "Where do we moor the pilot boat?"), (3, True, SCRIPT), (20, False, "Long ago")), start=1
        ):
            owner.execute(
                "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts, untrusted)"
                " VALUES ('harbour', %s, 's1', 'user', %s, %s, %s)",
                (number, content, NOW - timedelta(days=days), untrusted),
            )
    yield tmp_path
    close_all(Deadline.after(5))


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database.owner_dsn)


def ask(home: Path, method: str, name: str, /, **given: Any) -> tuple[int, Any]:
    status, document = routes.answer(home, method, name, given)
    return status, json.loads(json.dumps(document))


def read(home: Path, name: str, /, **given: Any) -> Any:
    status, document = ask(home, "GET", name, **given)
    assert status == 200, document
    return document


def test_the_last_days_are_told_apart_with_what_strangers_shaped(home: Path) -> None:
    found = read(home, "activity")
    days = {each["day"]: each["turns"] for each in found["days"]}
    assert list(days) == sorted(days)
    assert len(days) == 14
    assert days[f"{NOW:%Y-%m-%d}"] == 1
    assert days[f"{NOW - timedelta(days=3):%Y-%m-%d}"] == 1
    assert sum(days.values()) == 2
    assert (found["untrusted"], found["hidden"]) == (1, 0)


def test_a_home_without_a_memory_is_told_how_to_get_one_and_stays_empty(tmp_path: Path) -> None:
    for method, name in (("GET", "status"), ("GET", "list"), ("POST", "mute")):
        status, document = ask(tmp_path, method, name)
        assert (status, document["set_up"]) == (503, False)
        assert "hermes-pgvector up" in document["detail"]
    assert list(tmp_path.iterdir()) == []


def test_stored_text_travels_as_it_is(home: Path) -> None:
    assert SCRIPT in [row["content"] for row in read(home, "list", what="turns")["rows"]]


def test_nothing_is_changed_without_the_digest_of_what_was_shown(home: Path, stored: Stored) -> None:
    with nothing_changes(stored):
        status, plan = ask(home, "POST", "mute", ids=["t1"])
        assert (status, plan["executed"], plan["counts"]["turns"]) == (200, False, 1)
        for digest in ("", "x", plan["digest"][:-1], None):
            assert ask(home, "POST", "mute", ids=["t1"], execute=True, digest=digest)[0] in (400, 409)
        assert ask(home, "POST", "mute", ids=["t2"], execute=True, digest=plan["digest"])[0] == 409
        assert ask(home, "GET", "mute", ids=["t1"], execute=True, digest=plan["digest"])[0] == 404
    assert ask(home, "POST", "mute", ids=["t1"], execute=True, digest=plan["digest"])[0] == 200
    assert stored.rows("SELECT id FROM conversations WHERE hidden_by IS NOT NULL") == [(1,)]


def test_a_row_that_is_brought_back_gets_its_vector_soon(home: Path, stored: Stored) -> None:
    def change(**given: Any) -> None:
        plan = ask(home, "POST", "mute", **given)[1]
        assert ask(home, "POST", "mute", **given, execute=True, digest=plan["digest"])[0] == 200

    change(ids=["t1"])
    assert stored.rows("SELECT id FROM pending_vectors") == []
    change(undo="t1")
    wait_until(lambda: stored.rows("SELECT id FROM pending_vectors") == [(1,)], seconds=10)


def test_a_memory_is_added_at_once_gets_other_words_and_its_own_back(home: Path, stored: Stored) -> None:
    def change(name: str, **given: Any) -> None:
        plan = ask(home, "POST", name, **given)[1]
        assert ask(home, "POST", name, **given, execute=True, digest=plan["digest"])[0] == 200

    status, added = ask(home, "POST", "add", text="The crane lifts forty tonnes", theme="harbour", target="memory")
    assert (status, added["content"]) == (200, "The crane lifts forty tonnes")
    assert ("memory", "The crane lifts forty tonnes") in stored.memories("harbour")
    change("edit", id=added["id"], text="The crane lifts fifty tonnes")
    assert ("memory", "The crane lifts fifty tonnes") in stored.memories("harbour")
    change("undo", event=read(home, "list", what="events")["rows"][0]["id"])
    assert ("memory", "The crane lifts forty tonnes") in stored.memories("harbour")


@pytest.mark.parametrize(
    ("method", "name", "given", "status"),
    [
        ("GET", "no-such", {}, 404), ("POST", "list", {}, 404), ("GET", "up", {}, 404), ("GET", "promote", {}, 404),
        ("GET", "show", {}, 400), ("GET", "show", {"name": "m99"}, 404), ("GET", "list", {"what": "secrets"}, 400),
        ("GET", "list", {"limit": "many"}, 400), ("GET", "list", {"theme": "harbuor"}, 404),
        ("GET", "list", {"theme": "a\x00b"}, 400), ("GET", "list", {"theme": "a\ud800"}, 400),
        ("GET", "list", {"theme": "x" * 5000}, 400), ("GET", "list", {"theme": ["a", "b"]}, 400),
        ("GET", "list", {"no_such": "1"}, 400), ("POST", "mute", {"ids": {"a": 1}}, 400),
        ("POST", "mute", {"ids": ["t1", 7.5]}, 400), ("POST", "mute", {"ids": ["t1"], "execute": "yes"}, 400),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_a_sentence(
    home: Path, stored: Stored, method: str, name: str, given: Mapping[str, Any], status: int
) -> None:
    with nothing_changes(stored):
        answered, document = ask(home, method, name, **given)
    assert answered == status, document
    assert document["detail"].endswith((".", "?", "!"))


def test_a_database_that_is_away_is_a_sentence_and_the_status_says_so(home: Path) -> None:
    settings = {"dsn": "postgresql://hermes@127.0.0.1:9/hermes"}
    (home / "config.yaml").write_text(yaml.safe_dump({"memory": {"pgvector": settings}}), encoding="utf-8")
    close_all(Deadline.after(5))
    assert ask(home, "GET", "list")[0] == 503
    found = read(home, "status")
    assert found["error"]
    assert [note["then"] for note in found["notes"] if note["mark"] == "problem"] == ["hermes-pgvector doctor"]


def test_what_fails_inside_says_nothing_of_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a word that was stored")

    monkeypatch.setattr(access, "memory_of", fail)
    status, document = ask(home, "GET", "status")
    assert status == 500
    assert "stored" not in document["detail"]


def test_the_page_uses_the_engine_of_the_process_and_starts_none_of_its_threads(home: Path) -> None:
    read(home, "list")
    engine, _ = engine_for(home)
    read(home, "status")
    assert engine_for(home)[0] is engine
    assert not engine.tasks.is_running
