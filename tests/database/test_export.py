"""`export` and `import` of its files: memories and turns leave and arrive, and nothing else comes out of a file."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.ops.carry import intake
from hermes_memory_pgvector.server.server import ConnectionInfo
from hermes_memory_pgvector.terminal import progress, sink
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
    tmp_path: Path, postgres_server: ConnectionInfo, migrated_template: Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[tuple[Commands, Database]]]:
    """Homes with a database each; the last one's model is like the others'."""
    monkeypatch.setattr(Settings, "turn_max_chars", 1_000_000)
    monkeypatch.setattr(Settings, "memory_max_chars", 100_000)
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
    home = AgentHome.create(commands.home, database)
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


def brought(commands: Commands, path: Path | str, *, execute: bool = True) -> dict[str, Any]:
    done = commands.call("import", str(path), *(("--execute",) if execute else ()), "--json")
    assert done.code == 0, done.everything
    return {"stored": done.json["counts"]["rows"], "themes": done.json["samples"], "left_out": done.json["left_out"]}


def exported(commands: Commands, *arguments: str) -> bytes:
    path = commands.folder / "out.jsonl"
    done = commands.call("export", "--output", str(path), "--json", *arguments)
    assert done.code == 0, done.everything
    return path.read_bytes()


def said(exported: bytes) -> list[dict[str, Any]]:
    """What an export says, without who held or changed it where it comes from."""
    lines = [json.loads(line) for line in exported.splitlines()]
    return [{name: value for name, value in line.items() if name != "untrusted"} for line in lines]


def test_an_export_that_is_imported_says_the_same(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    live(here, source)
    bytes_here = exported(here)
    kinds = [line["kind"] for line in said(bytes_here)]
    stored = Stored(source.owner_dsn)
    assert kinds.count("turn") == stored.count("conversations") >= 30
    assert kinds.count("memory") == stored.count("memory_entries") == 14
    assert set(kinds) == {"hermes-pgvector", "turn", "memory"}
    path = str(here.folder / "out.jsonl")
    with nothing_changes(Stored(target.owner_dsn)):
        dry = brought(there, path, execute=False)
    first = brought(there, path)
    assert dry == first
    assert first["stored"] == kinds.count("turn") + kinds.count("memory")
    assert said(exported(there)) == said(bytes_here)
    with nothing_changes(Stored(target.owner_dsn)):
        again = brought(there, path)
    assert again["stored"] == 0
    with nothing_changes(stored):
        assert brought(here, path)["stored"] == 0, "where it comes from, it is known"
    compressed = str(here.folder / "out.jsonl.gz")
    assert here.call("export", "--output", compressed).code == 0
    assert gzip.decompress(Path(compressed).read_bytes()) == bytes_here
    assert Path(compressed).stat().st_mode & 0o077 == 0
    assert brought(there, compressed)["stored"] == 0


def test_two_exports_in_one_file_say_nothing_twice(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, _) = homes
    live(here, source)
    whole = exported(here)
    both = here.folder / "both.jsonl"
    both.write_bytes(whole + whole)
    rows = len(said(whole)) - 1
    assert brought(there, both, execute=False)["stored"] == brought(there, both)["stored"] == rows
    assert said(exported(there)) == said(whole)


def test_what_is_hidden_stays_so_wherever_it_goes(homes: list[tuple[Commands, Database]]) -> None:
    (here, source), (there, target) = homes
    home = AgentHome.create(here.home, source)
    agent = home.provider("market", "s1")
    agent.sync_turn("The pump in hall four leaks oil.", "I ordered a gasket for the pump.")
    agent.on_memory_write("add", "memory", "The pump is serviced by Anna.", {})
    home.settle()
    home.close()
    stored, moved = Stored(source.owner_dsn), Stored(target.owner_dsn)
    ((turn,),) = stored.rows("SELECT id FROM conversations WHERE role = 'user'")
    ((memory,),) = stored.rows("SELECT id FROM memory_entries")
    assert here.call("mute", f"t{turn}", f"m{memory}", "--execute").code == 0
    assert [line["kind"] for line in said(exported(here))] == ["hermes-pgvector", "turn"]
    assert brought(there, here.folder / "out.jsonl")["stored"] == 1
    assert [("hidden" in line) for line in said(exported(here, "--hidden"))] == [False, True, True, False]
    assert brought(there, here.folder / "out.jsonl")["stored"] == 2
    searched = "SELECT content FROM {} WHERE hidden_by IS NULL OR lexemes <> ''"
    assert moved.rows(searched.format("conversations")) == [("I ordered a gasket for the pump.",)]
    assert moved.rows(searched.format("memory_entries")) == []


def test_whoever_watches_sees_how_far_it_is_and_what_is_to_come(
    homes: list[tuple[Commands, Database]], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here, _), (there, _) = homes
    bars: list[progress.Bar] = []
    showing = progress.shown

    @contextlib.contextmanager
    def shown(*given: Any, **named: Any) -> Iterator[progress.Bar]:
        with showing(*given, **named) as bar:
            bars.append(bar)
            yield bar

    file, out = here.folder / "in.jsonl", here.folder / "out.jsonl"
    lines = [{"role": "user", "content": f"Saying {number} of these", "session": "s"} for number in range(20)]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(progress, "shown", shown)
        patched.setattr(sink, "is_terminal", lambda *_: True)
        commands: list[tuple[Commands, tuple[str, ...], int]] = [
            (here, ("import", str(file), "--execute"), file.stat().st_size),
            (here, ("export", "--output", str(out)), 20),
            (there, ("import", with_password(homes[0][1].owner_dsn)[0], "--execute"), 20),
        ]
        for memory, words, total in commands:
            password = {"PGPASSWORD": with_password(homes[0][1].owner_dsn)[1]}
            done = memory.call(*words, variables=password if words[1].startswith("post") else None)
            assert done.code == 0, done
            assert (bars[-1]._done, bars[-1]._total) == (total, total), words
        for words in (("theme", "rename", "hermes", "bay"), ("forget", "--match", "Saying")):
            before = len(bars)
            assert here.call(*words).code == 0
            assert len(bars) > before, words


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
    assert [line["kind"] for line in read("--until", "2020-01-01")] == ["hermes-pgvector"]
    assert len(read("--since", "1h")) == len(read())
    text = here.call("export", "--redact").out
    assert "hunter22" not in text
    assert "sk-proj" not in text
    assert "correct1horse" not in text
    # Without a history, a memory is added as it is, and a second time not at all.
    (here.folder / "part.jsonl").write_text(here.call("export", "--since", "1h").out, encoding="utf-8")
    assert brought(there, here.folder / "part.jsonl")["stored"] == 7
    # Secrets stop at the door, whoever brings them.
    assert Stored(target.owner_dsn).memories("market") == [("memory", "The password is [redacted:password]")]
    assert brought(there, here.folder / "part.jsonl")["stored"] == 0
    (here.folder / "masked.jsonl").write_text(text, encoding="utf-8")
    refused = here.call("import", str(here.folder / "masked.jsonl"), "--execute")
    assert (refused.code, "written with --redact" in " ".join(refused.err.split())) == (1, True)


TURN = {"kind": "turn", "theme": "t", "session": "s", "role": "user", "content": "x", "at": "2026-01-01"}
DEEP = '{"kind":"memory","content":"x","metadata":' + 20_000 * '{"a":' + "1" + 20_001 * "}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("not json", "line 2: this is neither a JSON object nor a list of them"),
        ('["a list"]', "line 2: this is neither a JSON object nor a list of them"),
        (DEEP, "line 2: this is neither a JSON object nor a list of them"),
        ("{}", "line 2: it has no words: neither content, memory nor text"),
        (json.dumps({**TURN, "role": None}), "a turn has no role"),
        (json.dumps({**TURN, "role": "king"}), "unknown role 'king'"),
        (json.dumps({**TURN, "at": "soon"}), "a time is neither in the form"),
        (json.dumps({**TURN, "at": 1e300}), "line 2: "),
        (json.dumps({**TURN, "theme": ["t"]}), "theme is not a text"),
        (json.dumps({**TURN, "ordinal": -1}), "an ordinal is not the number of an occurrence"),
        (json.dumps({**TURN, "metadata": "x"}), "metadata is not an object"),
        (json.dumps({"kind": "memory", "content": "x", "target": "wall"}), "unknown target 'wall'"),
        ('{"kind":"hermes-pgvector","format":2}', "the file has format 2"),
    ],
)
def test_a_bad_line_is_named_and_what_came_before_it_is_kept(
    homes: list[tuple[Commands, Database]], line: str, reason: str
) -> None:
    (here, database), _ = homes
    path = here.folder / "bad.jsonl"
    path.write_text(f"{json.dumps({**TURN, 'content': 'good'})}\n{line}\n", encoding="utf-8")
    done = here.call("import", "jsonl", str(path), "--execute")
    assert done.code == 1
    assert reason in " ".join(done.err.split())
    assert Stored(database.owner_dsn).count("conversations") == 1


def test_an_error_says_what_is_stored_and_leaves_it_in_the_audit_log(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    stored = Stored(database.owner_dsn)
    path = here.folder / "bad.jsonl"
    path.write_text(f"{json.dumps({**TURN, 'content': 'good'})}\nnot json\n", encoding="utf-8")
    assert "stored" not in here.call("import", str(path)).err
    assert stored.count("audit_log") == 0
    assert "1 row before it is stored" in " ".join(here.call("import", str(path), "--execute").err.split())
    assert stored.rows("SELECT action, counts FROM audit_log") == [("import", {"stored": 1, "known": 0})]


@pytest.mark.parametrize("first", [(2,), (0, 2), (0,), (1,)])
@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_part_and_then_the_whole_is_the_whole(
    homes: list[tuple[Commands, Database]], first: tuple[int, ...], *, is_hidden: bool
) -> None:
    (here, database), (there, _) = homes
    stored = Stored(database.owner_dsn)
    days = ["2026-01-01", "2026-02-01", "2026-03-01"]
    hidden = {"hidden": "2026-03-02"} if is_hidden else {}
    lines = [
        json.dumps({**TURN, "at": day, **(hidden if place not in first else {})}) for place, day in enumerate(days)
    ]
    path = here.folder / "part.jsonl"
    for each in [(place,) for place in first] + [(0, 1, 2), (2, 1, 0)]:
        path.write_text("\n".join(lines[place] for place in each), encoding="utf-8")
        brought(here, path)
    query = "SELECT ts::date::text, hidden_by IS NOT NULL FROM conversations ORDER BY ts"
    assert stored.rows(query) == [(day, is_hidden and place not in first) for place, day in enumerate(days)]
    exported(here, "--hidden")
    assert brought(here, here.folder / "out.jsonl")["stored"] == 0
    assert brought(there, here.folder / "out.jsonl")["stored"] == 3


def test_close_repetitions_survive_an_import_that_was_cut_off(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    times = ["2026-01-01T12:00", "2026-01-01T12:00", "2026-01-01T12:05"]
    path = here.folder / "close.jsonl"
    for number in (1, 3, 3):
        path.write_text("\n".join(json.dumps({**TURN, "at": at}) for at in times[:number]), encoding="utf-8")
        brought(here, path)
    assert Stored(database.owner_dsn).count("conversations") == 3


def test_words_repeated_at_the_edge_of_a_portion_are_each_there(
    homes: list[tuple[Commands, Database]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "PORTION_ROWS", 1)
    (here, database), _ = homes
    hidden, shown = ({**TURN, "at": f"2026-01-01T12:0{minute}"} for minute in (0, 5))
    path = here.folder / "edge.jsonl"
    for lines in ([shown], [{**hidden, "hidden": "2026-01-02"}, shown]):
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        brought(here, path)
    rows = Stored(database.owner_dsn).rows("SELECT hidden_by IS NOT NULL FROM conversations ORDER BY ts")
    assert rows == [(True,), (False,)]


def test_what_was_masked_at_the_door_comes_back_as_itself(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), (there, other) = homes
    home = AgentHome.create(here.home, database)
    for token in ("ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z4A", "ghp_zB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z4A"):
        home.provider("market", "s1").sync_turn(f"The robot signs in with {token} on Mondays.", "It does so.")
    home.settle()
    home.close()
    stored = Stored(database.owner_dsn)
    assert stored.count("conversations") == 3
    assert exported(here).count(b"[redacted:github-token] on Mondays") == 2
    with nothing_changes(stored):
        assert brought(here, here.folder / "out.jsonl")["stored"] == 0
    assert brought(there, here.folder / "out.jsonl")["stored"] == 3
    assert brought(there, here.folder / "out.jsonl")["stored"] == 0
    assert Stored(other.owner_dsn).count("conversations") == 3


def test_a_file_gives_no_orders_and_what_it_says_beside_rows_is_counted(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    stored = Stored(database.owner_dsn)
    memory = {"kind": "memory", "theme": "t", "target": "memory", "content": "Kept", "created_at": "2026-01-01"}
    lines = [
        {"kind": "alias", "old": "a", "new": "b", "since": "2026-01-01"},
        {"kind": "event", "theme": "t", "target": "memory", "action": "add", "content": "Event"},
        {"kind": "receipt", "receipt": 1}, {"kind": "tombstone", "receipt": 1}, {"kind": "withheld", "home": "h"},
        {**TURN, "content": "Hidden there", "hidden": "2026-01-01"},
        {**TURN, "content": "Claims much", "untrusted": "no", "origin": "tool", "home": "h", "digest": "00" * 16},
        {**TURN, "content": "Is less trusted", "untrusted": True},
        {**TURN, "content": "Is less trusted, too", "untrusted": "true"},
        {**memory, "homes": {"h": "file"}, "metadata": {"deep": json.loads(900 * "[" + 900 * "]")}},
    ]  # fmt: skip
    path = here.folder / "orders.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = brought(here, path)
    assert (done["stored"], done["left_out"]) == (5, {"that are neither turns nor memories": 5})
    assert stored.rows("SELECT content FROM conversations WHERE hidden_by IS NOT NULL") == [("Hidden there",)]
    assert stored.rows("SELECT content, origin, untrusted, home_id FROM conversations ORDER BY id")[1:] == [
        ("Claims much", "import", False, None),
        ("Is less trusted", "import", True, None),
        ("Is less trusted, too", "import", True, None),
    ]
    assert stored.rows("SELECT DISTINCT homes::text FROM memory_entries") == [("{}",)]
    for table in ("theme_aliases", "receipts", "forgotten", "memory_files"):
        if stored.rows("SELECT FROM pg_class WHERE relname = %s", table):
            assert stored.count(table) == 0, table
    # What is here already is not hidden on the word of a file.
    path.write_text(json.dumps({**TURN, "content": "Claims much", "hidden": "2026-01-01"}), encoding="utf-8")
    assert brought(here, path)["stored"] == 0
    assert stored.rows("SELECT hidden_by FROM conversations WHERE content = 'Claims much'") == [(None,)]


def test_a_dry_run_counts_what_a_run_stores(homes: list[tuple[Commands, Database]]) -> None:
    (here, database), _ = homes
    agents = AgentHome.create(here.home, database)
    agents.provider("t", "s").sync_turn("This was said and is forgotten by now.", "So it is, and it stays out.")
    agents.settle()
    agents.close()
    exported(here)
    assert here.call("forget", "--theme", "t", "--execute").code == 0
    path = here.folder / "more.jsonl"
    # More than a portion, with one row in it twice.
    lines = [
        json.dumps({**TURN, "theme": "o", "content": f"Turn {number % 700}", "ordinal": 1}) for number in range(1400)
    ]
    path.write_text((here.folder / "out.jsonl").read_text() + "\n".join(lines), encoding="utf-8")
    with nothing_changes(Stored(database.owner_dsn)):
        dry = brought(here, path, execute=False)
    real = brought(here, path)
    assert dry == real
    assert (real["stored"], real["left_out"]) == (700, {"that were forgotten here": 2})


def test_files_that_cannot_be_read_or_written_are_named(homes: list[tuple[Commands, Database]]) -> None:
    (here, _), _ = homes
    done = here.call("import", "jsonl", str(here.folder / "nowhere.jsonl"))
    assert (done.code, "there is no" in done.err) == (1, True)
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
    assert "it is not a file" in " ".join(here.call("export", "--output", str(pipe)).err.split())
    assert pipe.is_fifo(), "root would replace a device, too"
    for _ in range(2):
        assert here.call("export", "--output", str(link)).code == 0
        assert link.is_symlink()
    assert (here.folder / "behind.jsonl").read_bytes().startswith(b'{"kind":"hermes-pgvector"')
