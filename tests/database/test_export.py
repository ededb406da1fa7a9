"""`export` and `import jsonl`: everything leaves and arrives, as the same bytes."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.store.current_model import current_model
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.postgres import Database, new_database
from testing.stored import Stored
from testing.unchanged import nothing_changes

PLANES = "".join(chr(plane * 0x10000 + 0x0041 + plane) for plane in (0, 1, 2, 3, 14, 15, 16))
HOSTILE = [
    f"Every plane of Unicode, from letters to private signs: {PLANES} and \u0301combining",
    "Quotes \" ' \\ and control signs \x01\x1b[31m\x7f and a line separator \u2028 within one text",
    "A NUL \x00 within the words and half a sign \ud83d that no database takes as it is",
    "§ at the start of a line\n§\nand \r\n carriage returns \t tabs and trailing blanks kept inside   x",
    '{"kind":"turn"} looks like a line of the file itself and is only a text',
    "%s %(theme)s {} $1 '; DROP TABLE conversations; --  are no commands anywhere",
    "A very long text: " + "lang und breit " * 70_000,
]


@pytest.fixture
def homes(
    tmp_path: Path, postgres_server: ConnectionInfo, migrated_template: Database
) -> Iterator[list[tuple[Commands, Database]]]:
    """Homes with a database each; the last one's model is like the others'."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(2):
            database = stack.enter_context(new_database(postgres_server, template=migrated_template.name))
            runtime, password = with_password(database.runtime_dsn)
            commands = Commands(tmp_path / str(number), [password])
            commands.configure(dsn=runtime)
            made.append((commands, database))
        yield made


def live(commands: Commands, database: Database) -> None:
    """Rows as agents write them: hostile texts, repeated words, changed and removed memories, a delegation."""
    home = AgentHome.create(commands.home, database, turn_max_chars=1_000_000, memory_max_chars=100_000)
    for theme in ("market", "trading/ä"):
        agent = home.provider(theme, f"session of {theme}")
        messages: list[dict[str, str]] = []
        for text in [*HOSTILE, HOSTILE[0]]:
            messages += [{"role": "user", "content": text}, {"role": "assistant", "content": f"You said: {text}"}]
            agent.sync_turn(text, f"You said: {text}", messages=list(messages), turn_author={"id": "1", "name": "Ä"})
        for text in HOSTILE[:-1]:
            agent.on_memory_write("add", "memory", text, {"tool_call_id": "call_1"})
        agent.on_memory_write("replace", "memory", "This is another text now.", {"old_text": "looks like a line"})
        agent.on_memory_write("remove", "memory", "", {"old_text": "are no commands"})
        agent.on_memory_write("add", "user", "The user likes tea, not coffee.", {})
        agent.on_delegation("Count the bridges.", "There are seven.", child_session_id="child-1")
    home.settle()
    home.close()


def exported(commands: Commands, *arguments: str) -> bytes:
    path = commands.folder / "out.jsonl"
    done = commands.call("export", "--output", str(path), "--json", *arguments)
    assert done.code == 0, done.everything
    return path.read_bytes()


def vectors(database: Database) -> None:
    """A vector for every row, as an embedder would have made it."""
    with psycopg.connect(database.owner_dsn) as connection:
        model = current_model(connection)
        assert model is not None
        for table, texts, columns in (
            ("turn_vectors_1", "conversations", "ts, content_hash"),
            ("memory_vectors_1", "memory_entries", "ts, target"),
        ):
            values = "ts, hermes_content_hash(content)" if texts == "conversations" else "updated_at, target"
            connection.execute(
                f"INSERT INTO {table} (agent_identity, id, {columns}, embedding)"
                f" SELECT agent_identity, id, {values}, l2_normalize((SELECT array_agg(sin(t.id * n))"
                f" FROM generate_series(1, {model.dim}) AS n)::vector)::halfvec"
                f" FROM {texts} AS t".encode()
            )
        connection.execute("DELETE FROM pending_vectors")


def test_an_export_that_is_imported_is_exported_as_the_same_bytes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    live(here, source)
    vectors(source)
    bytes_here = exported(here, "--vectors")
    lines = [json.loads(line) for line in bytes_here.splitlines()]
    kinds = [line["kind"] for line in lines]
    stored = Stored(source.owner_dsn)
    assert kinds.count("turn") == stored.count("conversations") > 30
    assert kinds.count("memory") == stored.count("memory_entries") == 14
    assert kinds.count("event") == stored.count("memory_operations")
    assert kinds.count("delegation") == 2
    assert all(line["vectors"] for line in lines if line["kind"] in ("turn", "memory"))
    path = str(here.folder / "out.jsonl")
    with nothing_changes(Stored(target.owner_dsn)):
        dry = there.call("import", "jsonl", path, "--dry-run", "--json").json
    first = there.call("import", "jsonl", path, "--json")
    assert first.code == 0, first.everything
    assert dry["stored"] == first.json["stored"] == kinds.count("turn") + kinds.count("memory")
    assert exported(there, "--vectors") == bytes_here
    waiting = (
        "SELECT p.kind FROM pending_vectors AS p JOIN memory_entries USING (agent_identity, id) WHERE kind = 'memory'"
    )
    turns = "SELECT p.kind FROM pending_vectors AS p JOIN conversations USING (agent_identity, id) WHERE kind = 'turn'"
    assert Stored(target.owner_dsn).rows(f"{waiting} UNION ALL {turns}") == []
    with nothing_changes(Stored(target.owner_dsn)):
        again = there.call("import", "jsonl", path, "--json").json
    assert again["stored"] == 0
    compressed = str(here.folder / "out.jsonl.gz")
    assert here.call("export", "--vectors", "--output", compressed).code == 0
    assert gzip.decompress(Path(compressed).read_bytes()) == bytes_here
    assert Path(compressed).stat().st_mode & 0o077 == 0
    assert there.call("import", "jsonl", compressed, "--json").json["stored"] == 0


def test_what_is_muted_stays_so_wherever_it_goes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    agent = home.provider("market", "s1")
    agent.sync_turn("The pump in hall four leaks oil.", "I ordered a gasket for the pump.")
    agent.on_memory_write("add", "memory", "The pump is serviced by Anna.", {})
    home.settle()
    home.close()
    vectors(source)
    first = exported(here, "--vectors")
    (here.folder / "first.jsonl").write_bytes(first)
    stored, moved = Stored(source.owner_dsn), Stored(target.owner_dsn)
    ids = dict(stored.rows("SELECT content, id FROM conversations"))
    muted = "The pump in hall four leaks oil."
    ((memory,),) = stored.rows("SELECT id FROM memory_entries")
    assert here.call("mute", f"t{ids[muted]}", f"m{memory}", "--execute").code == 0
    bytes_here = exported(here, "--vectors")
    (path := here.folder / "second.jsonl").write_bytes(bytes_here)
    assert [json.loads(line)["kind"] for line in bytes_here.splitlines() if b'"muted":' in line] == ["memory", "turn"]
    assert there.call("import", "jsonl", str(path), "--json").json["stored"] == 3
    assert exported(there, "--vectors") == bytes_here
    searched = "SELECT content FROM {} WHERE muted_at IS NULL OR lexemes <> ''"
    assert moved.rows(searched.format("conversations")) == [("I ordered a gasket for the pump.",)]
    assert moved.rows(searched.format("memory_entries")) == []
    for commands, rows in ((here, stored), (there, moved)):
        for file in ("first.jsonl", "second.jsonl"):
            with nothing_changes(rows):
                again = commands.call("import", "jsonl", str(here.folder / file), "--json").json
            assert (again["stored"], again["known"]) == (0, 3), file
            assert commands.call("import", "jsonl", str(here.folder / file), "--dry-run", "--json").json["stored"] == 0


@pytest.mark.large
@pytest.mark.timeout(1_800)
def test_a_hundred_thousand_rows_are_exported_as_the_same_bytes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, _) = homes
    live(here, source)
    with psycopg.connect(source.owner_dsn) as connection:
        connection.execute(
            "INSERT INTO conversations (agent_identity, session_id, role, content, ts, digest, ordinal)"
            " SELECT agent_identity, 's' || n % 997, role, content || id || '/' || n, ts - n * interval '1 second',"
            " hermes_turn_digest(role, content || id || '/' || n), 1 FROM conversations,"
            " generate_series(1, CASE WHEN length(content) > 10000 THEN 20 ELSE 4000 END) AS n"
        )
    assert Stored(source.owner_dsn).count("conversations") > 100_000
    before = exported(here)
    assert there.call("import", "jsonl", str(here.folder / "out.jsonl"), "--json").code == 0
    assert hashlib.sha256(exported(there)).digest() == hashlib.sha256(before).digest()


def test_an_export_can_be_narrowed_and_masked(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    for theme, session in (("market", "s1"), ("market", "s2"), ("trading", "s1")):
        secret = "the key is sk-proj-abcdef0123456789abcdef and postgres://me:hunter22@db/x"
        home.provider(theme, session).sync_turn(
            f"{session} of {theme}: {secret}", "It is noted and kept for later use."
        )
    home.provider("market").on_memory_write("add", "memory", "The password is correct1horse", {})
    home.settle()
    home.close()

    def read(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in here.call("export", *arguments).out.splitlines()]

    assert {line.get("theme") for line in read("--theme", "market")[1:]} == {"market"}
    assert {line["kind"] for line in read("--session", "s1")[1:]} == {"turn"}
    assert [line["kind"] for line in read("--until", "2020-01-01")] == ["hermes-pgvector"]
    assert len(read("--since", "1h")) == len(read()) - 1
    text = here.call("export", "--redact").out
    assert "hunter22" not in text
    assert "sk-proj" not in text
    assert "correct1horse" not in text
    # Without a history, a memory is added as it is, and a second time not at all.
    (here.folder / "part.jsonl").write_text(here.call("export", "--since", "1h").out, encoding="utf-8")
    found = there.call("import", "jsonl", str(here.folder / "part.jsonl"), "--json").json
    assert found["stored"] == 7
    # Secrets stop at the door, whoever brings them.
    assert Stored(target.owner_dsn).memories("market") == [("memory", "The password is [redacted:password]")]
    assert there.call("import", "jsonl", str(here.folder / "part.jsonl"), "--json").json["stored"] == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "line 2: this is not a JSON object"),
        ('["a list"]', "line 2: this is not a JSON object"),
        ('{"kind":"song"}', "unknown kind 'song'"),
        ("{}", "line 2: it has no 'kind'"),
        ('{"kind":"turn","theme":"t","role":"user","content":"x"}', "a turn has no 'at'"),
        ('{"kind":"turn","theme":"t","role":"king","content":"x","at":"2026-01-01"}', "unknown role 'king'"),
        ('{"kind":"turn","theme":"t","role":"user","content":7,"at":"2026-01-01"}', "content is not a text"),
        ('{"kind":"turn","theme":"t","role":"user","content":"x","at":"soon"}', "a time is not in the form"),
        ('{"kind":"turn","theme":["t"],"role":"user","content":"x","at":"2026-01-01"}', "theme is not a text"),
        (
            '{"kind":"turn","theme":"t","role":"user","content":"x","at":"2026-01-01","ordinal":-1}',
            "an ordinal is not the number of an occurrence",
        ),
        (
            '{"kind":"turn","theme":"t","role":"user","content":"x","at":"2026-01-01","vectors":[{"chunk":0}]}',
            "vectors are not a list of chunks",
        ),
        ('{"kind":"alias","old":{},"new":"t","since":"2026-01-01"}', "old is not a text"),
        (
            '{"kind":"turn","theme":"t","role":"user","content":"x","at":"9999-12-31T23:59:59-14:00"}',
            "a time is before the year 1 or after the year 9999",
        ),
        ('{"kind":"hermes-pgvector","format":2}', "the file has format 2"),
    ],
)
def test_a_bad_line_is_named_and_what_came_before_it_is_kept(
    homes: list[tuple[Commands, Database]], line: str, said: str
) -> None:
    (here, database), _ = homes
    good = {"kind": "turn", "theme": "t", "session": "s", "role": "user", "content": "good", "at": "2026-01-01"}
    path = here.folder / "bad.jsonl"
    path.write_text(f"{json.dumps(good)}\n{line}\n", encoding="utf-8")
    done = here.call("import", "jsonl", str(path))
    assert done.code == 1
    assert said in " ".join(done.err.split())
    assert Stored(database.owner_dsn).count("conversations") == 1


def test_files_that_cannot_be_read_or_written_are_named(homes: list[tuple[Commands, Database]]) -> None:
    (here, _), _ = homes
    done = here.call("import", "jsonl", str(here.folder / "nowhere.jsonl"))
    assert (done.code, "cannot be read (No such file" in done.err) == (1, True)
    (here.folder / "broken.gz").write_bytes(b"no gzip at all")
    assert "cannot be read" in here.call("import", "jsonl", str(here.folder / "broken.gz")).err
    done = here.call("export", "--output", str(here.folder / "no folder" / "x.jsonl"))
    assert (done.code, "cannot be written" in done.err) == (1, True)
    whole = gzip.compress(b'{"kind":"hermes-pgvector","format":1,"schema":1,"events":false}\n' * 50)
    for damaged, reason in (
        (whole[:-12], "ends in the middle"),
        (whole[:10] + b"\xff\xff" + whole[12:], "it is damaged"),
        (b"no gzip at all", "it is damaged"),
    ):
        (here.folder / "damaged.jsonl.gz").write_bytes(damaged)
        done = here.call("import", "jsonl", str(here.folder / "damaged.jsonl.gz"))
        assert (done.code, reason in " ".join(done.err.split())) == (1, True), done.everything
    pipe, link = here.folder / "pipe", here.folder / "link.jsonl"
    os.mkfifo(pipe)
    link.symlink_to("behind.jsonl")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert here.call("export", "--output", str(pipe)).code == 0
    assert pipe.is_fifo()
    reader.join()
    for _ in range(2):
        assert here.call("export", "--output", str(link)).code == 0
        assert link.is_symlink()
    assert read == [(here.folder / "behind.jsonl").read_bytes()]


def test_what_was_forgotten_or_renamed_stays_so_wherever_it_goes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    words = "The caretaker keeps the spare key of the boiler room under the red flower pot."
    agent = home.provider("market", "s1")
    agent.sync_turn(words, "I shall remember where the spare key of the boiler room is.", session_id="s1")
    agent.on_memory_write("add", "memory", "The alarm code of hall four is in the blue folder.", {})
    home.provider("shop", "s2").sync_turn("The shop opens at nine on every day but Sunday.", "Noted, at nine it is.")
    home.settle()
    assert here.call("forget", "--match", "spare key", "--theme", "market", "--execute").code == 0
    assert here.call("forget", "--match", "alarm code", "--theme", "market", "--execute").code == 0
    assert here.call("remap", "shop", "market", "--execute").code == 0
    # Said again after it was forgotten: new, and taken along.
    agent.sync_turn(words, "So it is under the red flower pot again, and I note it anew.", session_id="s1")
    home.settle()
    home.close()
    with psycopg.connect(source.owner_dsn) as connection:
        connection.execute("INSERT INTO theme_aliases (old, new) VALUES ('taken', 'market')")
        connection.execute(
            "INSERT INTO memory_files (home_id, target, entries, withheld)"
            " VALUES ('h1', 'memory', '[]', ARRAY[sha256('x')])"
        )
    bytes_here = exported(here, "--forgotten")
    (path := here.folder / "all.jsonl").write_bytes(bytes_here)
    assert b"alarm" not in bytes_here
    plain = exported(here)
    assert (b'"alias"' in plain, b'"tombstone"' in plain, b'"key"' in plain) == (True, False, False)
    refused = here.call("export", "--forgotten", "--theme", "market")
    assert (refused.code, "--forgotten is for a move of everything" in " ".join(refused.err.split())) == (1, True)

    stored = Stored(target.owner_dsn)
    elsewhere = AgentHome.create(there.home, target)
    own = elsewhere.provider("trading", "s9")
    own.sync_turn("A word of this database that is forgotten here on its own.", "It is noted and kept for later.")
    elsewhere.provider("taken", "s8").sync_turn("This theme is in use here and stays itself.", "It stays as it is.")
    elsewhere.settle()
    assert there.call("forget", "--match", "A word of this", "--theme", "trading", "--execute").code == 0
    with nothing_changes(stored):
        assert there.call("import", "jsonl", str(path), "--dry-run").code == 0
    for attempt in range(2):
        done = there.call("import", "jsonl", str(path), "--json")
        assert done.code == 0, done.everything
        came = {"old names of themes": 1, "receipts of what was forgotten": 2} if attempt == 0 else {}
        assert done.json["also"] == came
        assert done.json["left_out"] == {"that are old names of themes, but are in use here": 1}
    assert words in {content for (content,) in stored.rows("SELECT content FROM conversations")}
    before = stored.count("conversations"), stored.count("memory_entries")
    late = [
        {"kind": "turn", "theme": "market", "session": "s1", "role": "user", "content": words, "at": "2026-01-01",
         "ordinal": 7},
        {"kind": "memory", "theme": "market", "target": "memory", "created_at": "2026-01-01",
         "content": "The alarm code of hall four is in the blue folder."},
        {"kind": "turn", "theme": "trading", "session": "s9", "role": "user", "at": "2026-01-01",
         "content": "A word of this database that is forgotten here on its own."},
    ]  # fmt: skip
    (file := there.folder / "late.jsonl").write_text("".join(json.dumps(each) + "\n" for each in late))
    assert there.call("import", "jsonl", str(file), "--json").json["stored"] == 0
    assert (stored.count("conversations"), stored.count("memory_entries")) == before
    live = elsewhere.provider("shop", "s2")
    live.sync_turn("The shop is closed on the day of the fair, too.", "That is noted for the fair.")
    elsewhere.settle()
    elsewhere.close()
    assert stored.themes_of("The shop is closed on the day of the fair, too.") == {"market"}
    assert stored.themes_of("This theme is in use here and stays itself.") == {"taken"}
    for number in range(1, stored.count("erasure_receipts") + 1):
        verified = there.call("forget", "--verify", str(number))
        assert verified.code == 0, verified.everything


def test_receipts_and_old_names_are_exported_as_the_same_bytes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    for theme in ("market", "shop"):
        home.provider(theme, "s1").sync_turn(
            f"The gate of {theme} is painted green.", "A fine colour for a gate it is."
        )
    home.settle()
    home.close()
    assert here.call("forget", "--session", "s1", "--theme", "market", "--execute").code == 0
    assert here.call("remap", "shop", "garden", "--execute").code == 0
    bytes_here = exported(here, "--forgotten")
    assert there.call("import", "jsonl", str(here.folder / "out.jsonl")).code == 0
    assert exported(there, "--forgotten") == bytes_here
    assert Stored(target.owner_dsn).count("tombstones") == Stored(source.owner_dsn).count("tombstones") > 0
