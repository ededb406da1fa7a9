"""status, recall, backfill and journal on a database that has something to tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest

from hermes_memory_pgvector.breaker import Breaker
from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.journal import Journal, Urgency, codec
from hermes_memory_pgvector.ops.fleet import journal
from hermes_memory_pgvector.runtime import processes
from hermes_memory_pgvector.store.mirror_files import digest_of
from hermes_memory_pgvector.values import AddMemory, AddTurn, Moment, RemoveMemory
from testing.command import PROGRAM, Commands, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.terminal import on_terminal
from testing.unchanged import nothing_changes

ROWS = """
INSERT INTO memory_entries (agent_identity, target, content) VALUES
    ('hermes', 'memory', 'The harbour master signs every permit in blue ink'),
    ('hermes', 'user', 'Likes tea'), ('dm-0123', 'memory', 'A private harbour secret');
INSERT INTO conversations (agent_identity, session_id, role, content, ts) VALUES
    ('hermes', 's1', 'user', 'Where do we moor the harbour pilot boat tonight?', '2026-03-01'),
    ('hermes', 's1', 'assistant', 'At the northern quay, beside the fuel barge of the harbour.', '2026-03-02'),
    ('other', 's2', 'user', 'The other theme also has a harbour to speak about', '2026-04-01');
"""


@pytest.fixture
def embedder() -> Iterator[EmbedServer]:
    with EmbedServer(dim=DIM) as server:
        yield server


@pytest.fixture
def commands(database: Database, embedder: EmbedServer, tmp_path: Path) -> Commands:
    """A home whose database holds rows that nobody has embedded yet."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_url=embedder.url, embed_model=MODEL)
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(ROWS)
    return made


def test_status_counts_rows_by_theme(commands: Commands) -> None:
    stored = commands.call("status", "--json").json["stored"]
    assert (stored["memories"], stored["turns"], stored["theme_count"]) == (3, 3, 3)
    assert [(row["theme"], row["memories"], row["turns"]) for row in stored["themes"]] == [
        ("hermes", 2, 2), ("dm-0123", 1, 0), ("other", 0, 1),
    ]  # fmt: skip
    assert stored["model"]["name"] == MODEL
    done = commands.call("stats", "--limit", "1")
    assert done.code == 0
    assert "3 memories, 3 turns in 3 themes" in done.out
    assert "2 themes more; see --limit" in done.out
    assert "dm-0123" not in done.out


def test_status_without_a_database_says_what_is_known(commands: Commands) -> None:
    done = commands.run("status", "--json", variables={"HERMES_PGVECTOR_DSN": "postgresql://me@127.0.0.1:9/x"})
    assert done.code == 2
    assert done.json["stored"] is None
    assert "Postgres" in done.json["error"]
    assert done.json["journal"]["waiting"] == 0


def test_status_shows_live_processes_and_what_they_miss(commands: Commands) -> None:
    breaker = Breaker("database writes", threshold=1)
    breaker.failed("Postgres cannot be reached")
    folder = commands.home / "pgvector"
    journal = Journal(folder / "journal", max_bytes=1_000_000)
    journal.open()
    journal.tell(processes.text_of_now([breaker.status()], writer_stored=1234, refused_turns=2))
    done = commands.call("status")
    assert "1,234" in done.out
    assert "database writes: Postgres cannot be reached" in done.out
    assert "2 writes refused" in done.out
    found = [check for check in commands.call("doctor", "--json").json["checks"] if check["name"] == "processes"]
    assert [check["level"] for check in found] == ["warning"]
    journal.close(Deadline.after(5))
    assert not processes.read_all(folder / "journal")


def test_recall_finds_by_words_and_after_backfill_by_meaning(commands: Commands, database: Database) -> None:
    by_words = commands.run("recall", "harbour", "--json").json
    assert {hit["agent_identity"] for hit in by_words["results"]} == {"hermes"}
    assert all(hit["score"] is None for hit in by_words["results"])
    done = commands.run("backfill", "--json")
    assert done.code == 0, done
    assert done.json["embedded"] == 6
    assert Stored(database.owner_dsn).count("pending_vectors") == 0
    by_meaning = commands.run("recall", "harbour permit ink", "--json").json["results"]
    assert by_meaning[0]["content"] == "The harbour master signs every permit in blue ink"
    assert by_meaning[0]["score"] > 0.3
    assert Stored(database.owner_dsn).count("memory_vectors_1") == 3


def test_recall_says_when_only_keywords_were_searched(commands: Commands) -> None:
    commands.configure(**{**commands.config["memory"]["pgvector"], "embed_url": "http://127.0.0.1:9"})
    note = "keyword search only: the embedding service is out of reach"
    assert commands.run("recall", "harbour", "--json").json["degraded"] == note
    assert note in " ".join(commands.run("recall", "harbour").out.split())


def test_recall_keeps_to_what_was_asked(commands: Commands) -> None:
    def found(*arguments: str) -> set[tuple[str, str]]:
        rows = commands.call("recall", "harbour", "--json", *arguments).json["results"]
        return {(row["agent_identity"], row["kind"]) for row in rows}

    assert found("--kind", "memories") == {("hermes", "memory")}
    assert found("--kind", "turns", "--scope", "all") == {("hermes", "turn"), ("other", "turn")}
    assert found("--scope", "other") == {("other", "turn")}
    assert found("--theme", "Other") == {("other", "turn")}
    assert found("--theme", "dm-0123") == {("dm-0123", "memory")}
    assert found("--since", "2026-03-02", "--until", "2026-03-02", "--kind", "turns") == {("hermes", "turn")}
    assert found("--since", "9999d", "--until", "2026-04-01", "--scope", "other") == {("other", "turn")}
    assert found("--since", "1m", "--kind", "turns", "--scope", "other") == set()
    assert commands.call("recall", "harbour", "--limit", "1", "--kind", "turns", "--json").json["count"] == 1
    assert commands.call("recall", "harbour", "--scope", "dm-0123").code == 2
    assert commands.run("recall", "harbour", "--since", "yesterday-ish").code == 2
    assert commands.call("recall", "   ").code == 2
    unknown = commands.call("export", "--theme", "othr")
    assert (unknown.code, "did you mean other?" in unknown.err) == (1, True)


def test_recall_shows_the_turns_beside_those_found(commands: Commands) -> None:
    (row,) = commands.call("recall", "pilot boat", "--kind", "turns", "--context", "--json").json["results"]
    assert row["before"] is None
    assert row["after"]["role"] == "assistant"
    assert row["after"]["content"].startswith("At the northern quay")
    lines = commands.call("recall", "fuel barge", "--context").out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if "fuel barge" in line]
    assert lines[place + 1].split()[:3] == ["before", "2026-03-01", "user"]
    assert "pilot boat" not in commands.call("recall", "fuel barge").out


def test_recall_reads_well_and_cannot_steer_the_terminal(commands: Commands, database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('hermes', 'memory', %s)",
            ("zeppelin \x1b[2J docks\nat noon",),
        )
    done = commands.run("recall", "zeppelin")
    assert "zeppelin" in done.out
    assert "docks at noon" in done.out
    assert "\x1b" not in done.out
    assert "1 hit in hermes" in done.out


def test_recall_says_that_nothing_was_found_and_where_it_looked(commands: Commands) -> None:
    done = commands.call("recall", "zebra quantum harmonica")
    assert done.code == 0
    assert "Nothing found in theme 'hermes' (2 memories, 2 turns searched by meaning and words)." in " ".join(
        done.out.split()
    )
    assert "hit" not in done.out
    answer = commands.call("recall", "zebra quantum harmonica", "--kind", "turns", "--json").json
    assert (answer["results"], answer["count"]) == ([], 0)
    assert answer["note"] == "Nothing found in theme 'hermes' (2 turns searched by meaning and words)."


def test_a_theme_that_does_not_exist_is_named_with_those_spelled_like_it(commands: Commands) -> None:
    for arguments in (("--theme", "hermse"), ("--scope", "hermse")):
        done = commands.call("recall", "harbour", *arguments)
        assert done.code == 1, done
        assert "there is no theme 'hermse'; did you mean hermes?" in done.err
    assert commands.call("recall", "zebra", "--theme", "other").code == 0


def test_whoever_asks_a_theme_that_holds_nothing_is_told_of_the_others(commands: Commands) -> None:
    assert "themes that hold" not in commands.call("recall", "harbour", "--since", "2099-01-01").out
    commands.configure(**{**commands.config["memory"]["pgvector"], "identity_aliases": {"hermes": "quay"}})
    done = commands.call("recall", "harbour")
    assert "Nothing found in theme 'quay'" in done.out
    assert "3 hits in hermes, 1 hit in other" in done.out
    assert "hermes-pgvector recall harbour --scope all" in done.out


def test_status_has_one_line_for_each_thing(commands: Commands) -> None:
    out = commands.call("status").out
    names = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and "  " in line.strip()]
    assert [name for name in names if names.count(name) > 1] == []
    assert {"model", "stored", "journal", "embedding"} <= set(names)


def test_on_a_terminal_hits_are_wrapped_to_its_width(commands: Commands) -> None:
    shown = on_terminal(
        [PROGRAM, "recall", "harbour", "--kind", "memories"],
        environment={**commands.environment, "COLUMNS": "44", "TERM": "xterm-256color"},
        folder=commands.folder,
    ).shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "      The harbour master signs every permit\n      in blue ink\n" in plain


def test_backfill_with_the_embedder_down_is_exit_code_2_and_loses_nothing(
    commands: Commands, embedder: EmbedServer
) -> None:
    embedder.mode = "500"
    done = commands.call("backfill")
    assert done.code == 2, done
    embedder.mode = "ok"
    assert commands.call("backfill").code == 0


def test_backfill_respects_which_turns_get_vectors(commands: Commands) -> None:
    done = commands.call("backfill", "--json", variables={"HERMES_PGVECTOR_CONVERSATION_EMBED_POLICY": "none"})
    assert (done.code, done.json["embedded"]) == (0, 3)


def left_behind(commands: Commands, payloads: list[bytes]) -> None:
    """Records of a process that has ended before they arrived."""
    journal = Journal(commands.home / "pgvector" / "journal", max_bytes=1 << 20)
    journal.open()
    for payload in payloads:
        journal.append(payload, Urgency.TURN)
    journal.close(Deadline.after(10))


def turn(content: str, role: str = "user") -> bytes:
    moment = Moment(1_770_000_000_000_000, 1_770_000_000_000_000)
    return codec.encode([AddTurn("hermes", "s9", role, content, 1, moment, is_live=True)])  # type: ignore[arg-type]


def test_status_tells_what_waits(commands: Commands) -> None:
    left_behind(commands, [turn("first"), turn("second")])
    assert commands.call("status", "--json").json["journal"]["waiting"] == 2
    assert "2 records waiting" in commands.call("status").out


def bury(database: Database, payload: bytes) -> int:
    """A record that Postgres has refused."""
    with psycopg.connect(database.owner_dsn) as owner:
        row = owner.execute(
            "INSERT INTO dead_letters (writer, position, payload, reason)"
            " VALUES ('gone', 7, %s, 'Postgres refuses the data') RETURNING id", (payload,),
        ).fetchone()  # fmt: skip
    assert row is not None
    return int(row[0])


def test_a_rejected_record_is_listed_and_shown(commands: Commands, database: Database) -> None:
    letter = bury(database, turn("the words inside"))
    assert "Postgres refuses the data" in commands.call("list", "rejected").out
    assert [row["id"] for row in commands.call("list", "rejected", "--json").json["rows"]] == [f"d{letter}"]
    shown = commands.call("show", f"d{letter}")
    assert "AddTurn" in shown.out
    assert "the words inside" in shown.out
    assert f"hermes-pgvector journal retry d{letter}" in shown.out
    found = [check for check in commands.call("doctor", "--json").json["checks"] if check["name"] == "dead letters"]
    assert found[0]["level"] == "warning"


def test_dropping_a_rejected_record_is_a_dry_run_at_first(commands: Commands, database: Database) -> None:
    letter = f"d{bury(database, b'rubbish')}"
    assert "unreadable" in commands.call("show", letter).out
    with nothing_changes(Stored(database.owner_dsn)):
        assert "would drop 1 record" in commands.call("journal", "drop", letter).out
    assert Stored(database.owner_dsn).count("dead_letters") == 1
    assert commands.call("journal", "drop", letter, "--execute", "--json").json["executed"] is True
    assert Stored(database.owner_dsn).count("dead_letters") == 0
    assert commands.call("journal", "drop", letter, "--execute").code == 1


def test_a_dead_letter_that_is_fine_now_is_stored_and_gone(commands: Commands, database: Database) -> None:
    letter = "d" + str(bury(database, turn("It was refused once and is welcome now")))
    done = commands.run("journal", "retry", letter)
    assert done.code == 0, done
    stored = Stored(database.owner_dsn)
    assert [row[2] for row in stored.turns("hermes", "welcome now")] == ["It was refused once and is welcome now"]
    assert stored.count("dead_letters") == 0


def test_a_dead_letter_that_is_refused_again_stays_as_it_was(commands: Commands, database: Database) -> None:
    letter = bury(database, turn("nobody has this role", role="ghost"))
    done = commands.run("journal", "retry", f"d{letter}", "--json")
    assert done.code == 1
    assert done.json["error"].startswith(f"d{letter} was rejected again: ")
    assert Stored(database.owner_dsn).rows("SELECT id, writer FROM dead_letters") == [(letter, "gone")]


def test_a_dead_letter_is_stored_once_however_often_it_is_retried(commands: Commands, database: Database) -> None:
    """The first try is cut off by somebody's lock; a removal done twice would take an entry nobody named."""
    entries = ("Oslo", "Oslo harbour")
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        for order, entry in enumerate(entries, start=1):
            add = AddMemory("hermes", "memory", entry, Moment(order, order), "h1")
            assert commands.call("journal", "retry", f"d{bury(database, codec.encode([add]))}").code == 0
        removal = RemoveMemory("hermes", "memory", "Oslo", Moment(3, 3), "h1", previous="Oslo")
        letter = f"d{bury(database, codec.encode([removal]))}"
        with owner.transaction():
            owner.execute("LOCK TABLE memory_operations IN ACCESS EXCLUSIVE MODE")
            with patch.object(journal, "RETRY_SECONDS", 1.0):
                assert commands.call("journal", "retry", letter).code != 0
        stored = Stored(database.owner_dsn)
        assert stored.count("dead_letters") == 1
        assert commands.call("journal", "retry", letter).code == 0
        assert commands.call("journal", "retry", letter).code == 1
    assert [entry for _, entry in stored.memories("hermes") if entry in entries] == ["Oslo harbour"]


def test_everything_a_script_may_read_is_json(commands: Commands) -> None:
    for arguments in (("status",), ("doctor",), ("config", "show"), ("list", "rejected")):
        json.loads(commands.call(*arguments, "--json").out)


def found(commands: Commands, name: str, **variables: str) -> list[tuple[str, str]]:
    """(level, text) of doctor's checks of that name."""
    done = commands.call("doctor", "--json", variables=variables)
    return [(check["level"], check["text"]) for check in done.json["checks"] if check["name"] == name]


def test_doctor_compares_files_with_rows(commands: Commands) -> None:
    (commands.home / "memories").mkdir()
    (commands.home / "memories" / "MEMORY.md").write_text("one fact\n§\nanother fact", encoding="utf-8")
    assert found(commands, "mirror") == [
        ("warning", "MEMORY.md: 2 entries not stored yet"),
        ("ok", "USER.md: 0 entries, all stored"),
    ]


def test_doctor_is_content_with_what_is_kept_out_of_the_rows_on_purpose(commands: Commands, database: Database) -> None:
    """An entry that was compared and is not stored was forgotten: no later comparison stores it."""
    (commands.home / "memories").mkdir()
    (commands.home / "memories" / "MEMORY.md").write_text("forgotten\n§\nnew", encoding="utf-8")
    with psycopg.connect(database.owner_dsn) as owner:
        owner.execute(
            "INSERT INTO memory_files (home_id, target, digests, compared_at) VALUES (%s, 'memory', %s, now())",
            (home_id(commands.home), [digest_of("forgotten")]),
        )
    assert found(commands, "mirror")[0] == ("warning", "MEMORY.md: 1 entry not stored yet")
    (commands.home / "memories" / "MEMORY.md").write_text("forgotten", encoding="utf-8")
    kept = "MEMORY.md: 1 entry, all stored but 1, forgotten or removed before"
    assert found(commands, "mirror")[0] == ("ok", kept)


def test_doctor_notices_damage_and_an_unwritable_journal(commands: Commands) -> None:
    folder = commands.home / "pgvector" / "journal"
    folder.mkdir(parents=True)
    (folder / "0190a1b2c3d-0123456789abcdef.00000001.damaged").write_bytes(b"x")
    assert "1 damaged segment" in found(commands, "journal")[-1][1]
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.write_text("a file where a folder should be", encoding="utf-8")
    ((level, _), *_) = found(commands, "journal")
    assert level == "problem"
