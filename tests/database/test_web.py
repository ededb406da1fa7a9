"""The memory page's API: what a browser asks, and what it gets, from a real database."""

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
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store import memories, recall_log
from hermes_memory_pgvector.store.memories import Placed
from hermes_memory_pgvector.store.recall_log import LoggedAnswer
from hermes_memory_pgvector.values import AddMemory, Kind, MemoryOperation, Moment, Origin, ReplaceMemory
from hermes_memory_pgvector.web import routes
from hermes_memory_pgvector.web.asked import Asked
from testing.command import with_password
from testing.postgres import MODEL, Database, new_database
from testing.stored import Stored

pytestmark = pytest.mark.postgres

SCRIPT = "<script>window.broken = true</script> ![x](http://evil.example/x.png) \u202egnirts"
NOW = datetime.now(UTC)


def moment(minutes: int) -> Moment:
    at = int((NOW - timedelta(minutes=minutes)).timestamp() * 1_000_000)
    return Moment(at, at)


OPERATIONS: list[MemoryOperation] = [
    AddMemory("harbour", "memory", "The pilot boat is moored at the old pier", moment(90), "home-a"),
    ReplaceMemory("harbour", "memory", "The pilot boat is moored at the northern quay", "old", moment(80), "home-a"),
    AddMemory("harbour", "user", "Mira likes short answers", moment(70), "home-b", Origin.FILE),
    AddMemory("garden", "memory", SCRIPT, moment(60), "home-a"),
]  # fmt: skip
TURNS = (
    ("harbour", "s1", "user", "Where do we moor the pilot boat tonight, and who has the keys?"),
    ("harbour", "s1", "assistant", "At the northern quay; the harbour master keeps the keys of the pilot boat."),
    ("harbour", "s2", "user", "How deep is the northern quay at low tide?"),
    ("garden", "g1", "user", "The roses need water in the evening, not at noon."),
)


class Page:
    """The page of one home."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def get(self, name: str, /, **query: str) -> tuple[int, Any]:
        return self._plain(routes.answer(routes.READS[name], Asked(self.home, query)))

    def post(self, name: str, /, **body: Any) -> tuple[int, Any]:
        return self._plain(routes.answer(routes.CHANGES[name], Asked(self.home, {}, body)))

    def read(self, name: str, /, **query: str) -> Any:
        status, document = self.get(name, **query)
        assert status == 200, document
        return document

    def do(self, name: str, /, **body: Any) -> Any:
        """Ask twice, as the page does."""
        status, plan = self.post(name, **body)
        assert (status, plan["executed"]) == (200, False), plan
        status, done = self.post(name, **body, confirm=plan["digest"])
        assert (status, done["executed"]) == (200, True), done
        return done

    @staticmethod
    def _plain(answered: tuple[int, Mapping[str, Any]]) -> tuple[int, Any]:
        return answered[0], json.loads(json.dumps(answered[1]))


@pytest.fixture(scope="module")
def filled(postgres_server: ConnectionInfo, migrated_template: Database) -> Iterator[Database]:
    """A filled database that nobody changes."""
    with new_database(postgres_server, template=migrated_template.name) as made:
        fill(made)
        yield made


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """The filled database, or one of its own for a test that changes it."""
    if "stored" not in request.fixturenames:
        yield request.getfixturevalue("filled")
        return
    server, empty = (request.getfixturevalue(name) for name in ("postgres_server", "migrated_template"))
    with new_database(server, template=empty.name) as own:
        fill(own)
        yield own


@pytest.fixture
def stored(database: Database) -> Stored:
    """What is in the database, for a test that changes it."""
    return Stored(database.owner_dsn)


def fill(database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        for number, operation in enumerate(OPERATIONS, start=1):
            memories.store(owner, [Placed(operation, "writer", number, 0)])
        for number, (theme, session, role, content) in enumerate(TURNS, start=1):
            owner.execute(
                "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                (theme, number, session, role, content, NOW - timedelta(minutes=50 - number)),
            )  # fmt: skip
        owner.execute(
            "INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest, ts)"
            " VALUES ('harbour', 's1', 's2', '', now())"
        )
        answer = LoggedAnswer("harbour", NOW, "s1", "prefetch", Kind.MEMORY, "current", None, None, (), 12.5)
        recall_log.insert(owner, [answer, answer])


@pytest.fixture
def home(database: Database, tmp_path: Path) -> Iterator[Path]:
    runtime, _ = with_password(database.runtime_dsn)
    document = {"memory": {"provider": "pgvector", "pgvector": {"dsn": runtime, "embed_model": MODEL}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    yield tmp_path
    close_all(Deadline.after(5))


@pytest.fixture
def page(home: Path) -> Page:
    return Page(home)


def test_the_fleet_lists_themes_with_growth_and_homes(page: Page) -> None:
    fleet = page.read("fleet")
    assert [each["theme"] for each in fleet["themes"]] == ["harbour", "garden"]
    harbour = fleet["themes"][0]
    assert (harbour["memories"], harbour["turns"]) == (2, 3)
    assert harbour["homes"] == ["home-a", "home-b"]
    assert (len(harbour["growth"]), harbour["growth"][-1]) == (14, 5)
    assert harbour["last_recall"] is not None
    assert (fleet["memories"], fleet["turns"], fleet["count"], fleet["all"]) == (3, 4, 2, 2)
    found = page.read("fleet", find="GARD", limit="1")
    assert [each["theme"] for each in found["themes"]] == ["garden"]
    assert (found["count"], found["all"]) == (1, 2)
    assert page.read("fleet", first="1", sort="name")["themes"][0]["theme"] == "harbour"


def test_activity_tells_every_day_apart(page: Page) -> None:
    days = page.read("activity")["days"]
    assert len(days) == 14
    assert days[-1]["day"] == NOW.date().isoformat()
    assert {"memories": 3, "turns": 4, "recalls": 2, "degraded": 0, "p50_ms": 12.5}.items() <= days[-1].items()
    assert {"memories": 0, "turns": 0, "recalls": 0, "p50_ms": None}.items() <= days[0].items()
    assert page.read("activity", theme="garden")["days"][-1]["turns"] == 1


def test_health_says_in_words_what_is_wrong(page: Page, home: Path) -> None:
    healthy = page.read("health")
    by_name = {each["name"]: each for each in healthy["checks"]}
    assert healthy["set_up"] is True
    assert by_name["database"]["level"] == "ok"
    assert by_name["journal"]["text"].startswith("0 records waiting")
    document = yaml.safe_load((home / "config.yaml").read_text())
    document["memory"]["pgvector"]["dsn"] = "postgresql://nobody:hunter2secret@127.0.0.1:9/nowhere"
    (home / "config.yaml").write_text(yaml.safe_dump(document))
    broken = page.read("health")
    first = broken["checks"][0]
    assert (broken["level"], first["name"]) == ("problem", "database")
    assert "kept in the journal" in first["text"]
    assert first["command"] == "hermes-pgvector doctor"
    status, said = page.get("fleet")
    assert status == 503
    assert said["detail"].endswith(".")
    assert "hunter2secret" not in json.dumps([broken, said, page.read("checks")])


def test_a_home_without_a_memory_is_told_how_to_get_one_and_stays_empty(tmp_path: Path) -> None:
    page = Page(tmp_path)
    health = page.read("health")
    assert (health["set_up"], health["checks"][0]["command"]) == (False, "hermes-pgvector up")
    assert page.get("fleet") == (
        503,
        {"detail": "There is no memory in this home yet; run: hermes-pgvector up."},
    )
    assert list(tmp_path.iterdir()) == []


def test_search_marks_words_and_says_how_each_hit_was_found(page: Page) -> None:
    found = page.read("search", q="pilot boat keys", theme="harbour")
    memories_found, turns_found = found["groups"]
    assert [each["kind"] for each in found["groups"]] == ["memory", "turn"]
    assert memories_found["hits"][0]["name"].startswith("m")
    hit = turns_found["hits"][0]
    assert hit["theme"] == "harbour"
    assert {"pilot", "boat", "keys"} <= {text for text, is_word in hit["parts"] if is_word}
    assert hit["meaning"] is None
    assert 0 < hit["words_share"] <= 1
    assert {"pilot", "boat"} <= set(hit["words"])
    assert found["degraded"]
    assert sum(term["weight"] for term in found["terms"]) == pytest.approx(1, abs=0.01)


def test_why_a_hit_is_one_is_told_for_that_hit(page: Page) -> None:
    asked = {"q": "pilot boat keys", "theme": "harbour"}
    hit = page.read("search", **asked)["groups"][1]["hits"][0]
    why = page.read("why", **asked, name=hit["name"], within="harbour")
    assert why["hit"]["name"] == hit["name"]
    assert (why["hit"]["words"], why["hit"]["words_share"]) == (hit["words"], hit["words_share"])
    assert (why["group"]["kind"], why["group"]["hits"]) == ("turn", [])
    assert {term["word"] for term in why["terms"]} >= {"pilot", "boat"}
    status, said = page.get("why", **asked, name="t4711", within="harbour")
    assert (status, said["detail"].startswith("This search no longer finds it")) == (404, True)


def test_a_sign_that_no_text_has_is_refused(page: Page) -> None:
    for text in ("har\x00bour", "har\ud800bour"):
        assert page.get("rows", theme=text) == (400, {"detail": "Theme holds a sign that no stored text has."})
        assert page.post("mute", theme=text, ids=["t1"])[0] == 400
    status, said = page.get("search", q="boat", since="0001-01-01T00:00+14:00")
    assert (status, said["detail"][:19]) == (400, "Since is not a date")


def test_search_narrows_by_theme_role_kind_and_time(page: Page) -> None:
    everywhere = page.read("search", q="northern quay")
    assert {hit["theme"] for group in everywhere["groups"] for hit in group["hits"]} == {"harbour"}
    said = page.read("search", q="northern quay", role="assistant")
    assert [group["kind"] for group in said["groups"]] == ["turn"]
    assert {hit["role"] for hit in said["groups"][0]["hits"]} == {"assistant"}
    user = page.read("search", q="short answers", what="user")
    assert [hit["target"] for hit in user["groups"][0]["hits"]] == ["user"]
    assert page.read("search", q="northern quay", what="turns", until="2001-01-01")["groups"][0]["hits"] == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({}, "Give a question"),
        ({"q": "x" * 5000}, "Q is longer than"),
        ({"q": "boat", "since": "yesterday"}, "Since is not a date"),
        ({"q": "boat", "what": "memory", "role": "user"}, "Memories have no role"),
        ({"q": "boat", "limit": "-1"}, "Limit is not a whole number"),
        ({"q": "boat", "role": "boss"}, "Role is one of"),
    ],
)
def test_what_cannot_be_searched_for_gets_a_sentence(page: Page, query: dict[str, str], says: str) -> None:
    status, said = page.get("search", **query)
    assert status == 400
    assert said["detail"].startswith(says)


def test_a_theme_that_is_mistyped_is_named(page: Page) -> None:
    for name in ("rows", "theme", "sessions", "delegations", "history"):
        status, said = page.get(name, theme="harbor")
        assert (status, said["detail"]) == (404, "There is no theme 'harbor'; did you mean harbour?")
    assert page.get("search", q="boat", theme="harbor")[0] == 404


def test_a_theme_shows_memories_with_their_history(page: Page) -> None:
    rows = page.read("rows", theme="harbour", kind="memory", limit="1")
    assert rows["rows"][0]["content"] == "Mira likes short answers"
    older = page.read("rows", theme="harbour", kind="memory", limit="1", page=rows["next"])
    name = older["rows"][0]["name"]
    shown = page.read("row", name=name, theme="harbour")
    assert [event["action"] for event in shown["history"]] == ["add", "replace"]
    assert shown["row"]["homes"] == {"home-a": "tool"}
    events = page.read("history", theme="harbour")["events"]
    assert [event["action"] for event in events] == ["add", "replace", "add"]
    assert events[0]["by"] == "file"


def test_sessions_are_transcripts_with_their_delegations(page: Page) -> None:
    assert [each["session_id"] for each in page.read("sessions", theme="harbour")["sessions"]] == ["s2", "s1"]
    told = page.read("transcript", theme="harbour", session="s1")
    assert [turn["role"] for turn in told["turns"]] == ["user", "assistant"]
    assert [edge["child_session_id"] for edge in told["children"]] == ["s2"]
    assert page.read("delegations", theme="harbour")["edges"][0]["session_id"] == "s1"
    assert page.read("names", find="har")["names"] == ["harbour"]


def test_stored_text_travels_as_it_is(page: Page) -> None:
    assert page.read("rows", theme="garden", kind="memory")["rows"][0]["content"] == SCRIPT


def test_a_memory_is_removed_after_confirmation_and_put_back(page: Page, stored: Stored) -> None:
    row = page.read("rows", theme="harbour", kind="memory")["rows"][1]
    done = page.do("remove", theme="harbour", name=row["name"])
    assert done["remove"] == ["The pilot boat is moored at the northern quay"]
    assert [content for _, content in stored.memories("harbour")] == ["Mira likes short answers"]
    back = page.do("undo", theme="harbour", event=done["event"])
    assert back["restore"] == done["remove"]
    assert "The pilot boat is moored at the northern quay" in [text for _, text in stored.memories("harbour")]
    actions = [action for (action,) in stored.rows("SELECT action FROM audit_log ORDER BY id")]
    assert actions == ["remove", "undo"]


def test_nothing_is_changed_without_the_digest_of_what_was_shown(page: Page, stored: Stored) -> None:
    before = stored.memories("harbour")
    row = page.read("rows", theme="harbour", kind="memory")["rows"][0]["name"]
    for name, named in (("remove", {"name": row}), ("forget", {"name": row}), ("mute", {"ids": [row]})):
        body = {"theme": "harbour", **named}
        assert page.post(name, **body)[1]["executed"] is False
        status, said = page.post(name, **body, confirm="0" * 32)
        assert (status, "look at it again" in said["detail"]) == (409, True)
        assert said["digest"]
    assert stored.memories("harbour") == before
    assert page.post("remove", theme="garden", name=row)[0] == 409
    assert page.post("remove", theme="harbour", name="t1")[0] == 409


def test_what_came_after_the_count_is_not_erased_with_it(page: Page, stored: Stored) -> None:
    status, plan = page.post("forget", theme="harbour", what="session", session="s1")
    assert (status, plan["counts"]["turns"]) == (200, 2)
    with psycopg.connect(stored.dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)"
            " VALUES ('harbour', 99, 's1', 'user', 'One more thing before you forget', now())"
        )
    status, said = page.post("forget", theme="harbour", what="session", session="s1", confirm=plan["digest"])
    assert (status, said["counts"]["turns"]) == (409, 3)
    assert len(stored.turns("harbour")) == 4


def test_forgetting_counts_first_and_leaves_a_receipt(page: Page, stored: Stored) -> None:
    row = page.read("rows", theme="harbour", kind="memory")["rows"][1]["name"]
    status, plan = page.post("forget", theme="harbour", what="row", name=row)
    assert (status, plan["counts"]["memories"], plan["samples"][0]["name"]) == (200, 1, row)
    done = page.do("forget", theme="harbour", what="row", name=row)
    assert done["receipt"] > 0
    assert [content for _, content in stored.memories("harbour")] == ["Mira likes short answers"]
    page.do("forget", theme="garden", what="theme")
    assert stored.memories("garden") == []
    assert len(stored.turns("harbour")) == 3


def test_hidden_rows_are_listed_and_brought_back(page: Page, stored: Stored) -> None:
    page.do("mute", theme="harbour", ids=["t1"])
    listed = page.read("rows", theme="harbour", kind="hidden")["rows"]
    assert [(row["name"], row["hidden_by"]) for row in listed] == [("t1", 1)]
    assert page.read("search", q="pilot boat keys", what="turns")["groups"][0]["hits"][0]["name"] == "t2"
    assert page.read("list", what="hidden")["rows"][0]["what"] == "t1"
    page.do("mute", theme="harbour", undo="t1")
    assert page.read("rows", theme="harbour", kind="hidden")["rows"] == []
    actions = [action for (action,) in stored.rows("SELECT action FROM audit_log ORDER BY id")]
    assert actions == ["mute", "mute undo"]


def test_a_turn_far_down_a_long_session_is_on_the_page_that_is_opened_for_it(page: Page, stored: Stored) -> None:
    with psycopg.connect(stored.dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)"
            " SELECT 'harbour', 1000 + n, 'long', 'user', 'Turn ' || n, now() + n * interval '1 second'"
            " FROM generate_series(1, 300) AS n"
        )
    told = {"theme": "harbour", "session": "long"}

    def names(**query: str) -> tuple[list[str], Any]:
        document = page.read("transcript", **told, **query)
        return [turn["name"] for turn in document["turns"]], document

    whole, document = names()
    assert (whole[0], len(whole), document["begins_later"]) == ("t1001", 100, False)
    for near in ("t1001", "t1100"):
        assert names(turn=near) == (whole, document)
    shown, document = names(turn="t1250")
    assert (shown[0], shown[10], document["begins_later"]) == ("t1240", "t1250", True)
    assert document["next"] is None
    shown, document = names(turn="t1150")
    after, rest = names(turn="t1150", page=document["next"])
    assert (shown[0], after[0], after[-1], rest["begins_later"]) == ("t1140", "t1240", "t1300", False)
    assert names(turn="t999999")[0] == whole


def test_a_long_turn_is_cut_in_a_transcript_and_whole_by_itself(page: Page, stored: Stored) -> None:
    with psycopg.connect(stored.dsn) as owner:
        owner.execute(
            "UPDATE conversations SET content = repeat('x', 60000) WHERE id = 1 AND agent_identity = 'harbour'"
        )
    turn = page.read("transcript", theme="harbour", session="s1")["turns"][0]
    assert (turn["name"], len(turn["content"]), turn["left_out"]) == ("t1", 8000, 52000)
    assert len(page.read("row", theme="harbour", name="t1")["row"]["content"]) == 60000


def test_a_theme_is_found_whatever_the_case_of_its_letters(page: Page, stored: Stored) -> None:
    with psycopg.connect(stored.dsn) as owner:
        owner.execute(
            "INSERT INTO conversations (agent_identity, id, session_id, role, content, ts)"
            " VALUES ('Harbour Office', 99, 's1', 'user', 'A theme of an older program', now())"
        )
    for find in ("harb", "HARB"):
        assert {"harbour", "Harbour Office"} == {each["theme"] for each in page.read("fleet", find=find)["themes"]}
        assert page.read("names", find=find)["names"] == ["Harbour Office", "harbour"]


def test_the_page_uses_the_engine_of_the_process_and_starts_none_of_its_threads(page: Page, home: Path) -> None:
    page.read("fleet")
    engine, _ = engine_for(home)
    page.read("health")
    assert engine_for(home)[0] is engine
    assert not engine.tasks.is_running
