"""No secret and no content in any log record, with every logger of the process at DEBUG, whatever goes wrong.

Each test lives through one kind of trouble with canaries planted wherever a real home has secrets and words: the DSN's
password, the embedder's key, other lines of .env, memories, turns, questions, delegations, a partner's phone number.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.writer import embed_pending
from testing.cases import some_of
from testing.command import Commands
from testing.embed_server import EmbedServer, Mode
from testing.faulty import FaultyServer, through
from testing.postgres import DIM, MODEL, Database
from testing.proxy import Proxy
from testing.stored import Stored
from testing.waiting import wait_until

KEY = "sk-canary-key-51b2"
WRONG_PASSWORD = "canary-wrong-password-9e"
OTHER_VARIABLE = "canary-other-variable-77"
TURN = "canary-turn-4412 is what the user confided about saffron"
REPLY = "canary-reply-8210 is what the assistant advised about saffron"
MEMORY = "canary-memory-6054 is a fact about saffron"
FILE_ENTRY = "canary-file-3391 is an entry of MEMORY.md about saffron"
TASK = "canary-task-1180 was delegated"
QUESTION = "canary-question-2273 about saffron"
PHONE = "4915155501234"
PLANTED = [KEY, WRONG_PASSWORD, OTHER_VARIABLE, PHONE, *(
    words.split()[0] for words in (TURN, REPLY, MEMORY, FILE_ENTRY, TASK, QUESTION)
)]  # fmt: skip


class Collector(logging.Handler):
    """Everything a formatter could get out of the records of this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        told = [record.getMessage(), repr(record.args), str(record.exc_text), str(record.stack_info)]
        if record.exc_info and record.exc_info[1] is not None:
            told += traceback.format_exception(record.exc_info[1])
        # What a JSON formatter would write: whatever else hangs on the record.
        told.append(repr({name: value for name, value in vars(record).items() if name not in ("exc_info", "args")}))
        self.lines.append((record.name, "\n".join(told)))

    def names(self) -> set[str]:
        return {name.partition(".")[0] for name, _ in self.lines}

    def leaks(self, canaries: list[str]) -> list[str]:
        return [f"{canary} in {name}: {text}" for name, text in self.lines for canary in canaries if canary in text]


@dataclass
class Life:
    """A home with something to hide, and everything its process has logged."""

    commands: Commands
    database: Database
    endpoint: EmbedServer
    log: Collector
    dsn: str
    canaries: list[str]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.commands.home

    @property
    def stored(self) -> Stored:
        return Stored(self.database.owner_dsn)

    @property
    def engine(self) -> Engine:
        return engine_for(self.path)[0]

    def configure(self, *, password: str | None = None, key: str = KEY, **settings: Any) -> None:
        parts = conninfo_to_dict(self.dsn)
        real = str(parts.pop("password"))
        reference = make_conninfo("", **{**parts, "password": "${HERMES_PGVECTOR_PASSWORD}"})
        self.commands.configure(dsn=reference, **{**self.settings, **settings})
        (self.path / ".env").write_text(
            f"HERMES_PGVECTOR_PASSWORD={password or real}\nTEST_CANARY_KEY={key}\nTEST_OTHER={OTHER_VARIABLE}\n",
            encoding="utf-8",
        )

    def provider(self, key: str = "marketing", session: str = "s1") -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider()
        made.initialize(
            session, hermes_home=str(self.path), platform="api_server", agent_context="primary",
            gateway_session_key=key, agent_identity="default", agent_workspace="hermes",
        )  # fmt: skip
        return made

    def talk(self, number: int) -> PgvectorMemoryProvider:
        """Every hook once."""
        agent = self.provider()
        agent.system_prompt_block()
        agent.on_turn_start(number, f"{TURN} {number}")
        agent.prefetch(f"{QUESTION} {number}")
        agent.handle_tool_call("recall_memory", {"query": QUESTION})
        agent.handle_tool_call("recall_conversation", {"query": QUESTION, "scope": QUESTION, "limit": "many"})
        agent.handle_tool_call(QUESTION, QUESTION)
        agent.sync_turn(f"{TURN} {number}", f"{REPLY} {number}", session_id="s1")
        agent.on_memory_write("add", "memory", f"{MEMORY} {number}", metadata={"old_text": MEMORY})
        agent.on_memory_write("replace", "memory", f"{MEMORY} {number}!", metadata={"old_text": f"{MEMORY} {number}"})
        agent.on_delegation(f"{TASK} {number}", f"{TASK} done {number}", child_session_id="c1")
        messages = [{"role": "user", "content": f"{TURN} {number}"}, {"role": "assistant", "content": REPLY}]
        agent.on_pre_compress(messages)
        agent.on_session_end(messages)
        agent.on_session_switch("s2", parent_session_id="s1", reason="branch")
        self.provider(f"agent:main:whatsapp:dm:+{PHONE}").sync_turn(f"{TURN} {PHONE} {number}", REPLY, session_id="d1")
        return agent

    def settle(self) -> None:
        wait_until(lambda: self.engine.writer.flush(Deadline.after(1)), seconds=60)

    def has_arrived(self, number: int) -> bool:
        return f"{MEMORY} {number}!" in {text for _, text in self.stored.memories("marketing")}


@pytest.fixture
def life(tmp_path: Path, database: Database, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    monkeypatch.setattr(embed_pending, "HOLD_SECONDS", 0.2)
    monkeypatch.setattr(embed_pending, "RETURN_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(Settings, "batch_embed_seconds", 2.0)
    dsn = through(database.runtime_dsn, proxy)
    password = str(conninfo_to_dict(dsn)["password"])
    collector = Collector()
    loggers = [logging.root, *(each for each in map(logging.getLogger, logging.root.manager.loggerDict))]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.DEBUG)
    logging.root.addHandler(collector)
    with EmbedServer(DIM) as endpoint:
        endpoint.require_key = KEY
        settings = {
            "embed_url": endpoint.url, "embed_model": MODEL, "embed_protocol": "openai", "embed_dim": DIM,
            "embed_api_key_env": "TEST_CANARY_KEY", "turn_min_chars": 1,
            "embed_timeout": 0.5, "prefetch_budget": 1.0,
        }  # fmt: skip
        canaries = [*PLANTED, password]
        made = Life(Commands(tmp_path, [*canaries]), database, endpoint, collector, dsn, canaries, settings)
        made.configure()
        (made.path / "memories").mkdir()
        (made.path / "memories" / "MEMORY.md").write_text(FILE_ENTRY, encoding="utf-8")
        yield made
        close_all(Deadline.after(2))
    logging.root.removeHandler(collector)
    for each, level in zip(loggers, levels, strict=True):
        each.setLevel(level)


@pytest.fixture
def quiet(life: Life, capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[], None]]:
    """Asserts that nothing was told, in the log or on the process's own output."""
    printed: list[str] = []

    def check() -> None:
        printed.extend(capfd.readouterr())
        assert life.log.leaks(life.canaries) == []
        assert [canary for canary in life.canaries if canary in "".join(printed)] == []

    yield check
    check()


def test_the_collector_would_find_a_canary(life: Life) -> None:
    logger = logging.getLogger("hermes_memory_pgvector.anything")
    logger.debug("%s", MEMORY)
    try:
        raise ValueError(TURN)
    except ValueError:
        logger.debug("failed", exc_info=True)
    logger.debug("more", extra={"question": QUESTION})
    assert len(life.log.leaks(life.canaries)) == 3


def test_a_working_life(life: Life, quiet: Callable[[], None]) -> None:
    agent = life.talk(1)
    life.settle()
    assert life.has_arrived(1)
    wait_until(lambda: life.stored.count("pending_vectors") == 0)
    wait_until(lambda: life.stored.themes_of(FILE_ENTRY))
    assert any(request.headers.get("authorization") == f"Bearer {KEY}" for request in life.endpoint.requests)
    assert "canary-memory" in life.provider(session="s9").prefetch("what is known about saffron")
    agent.on_memory_write("remove", "memory", "", metadata={"old_text": MEMORY})
    agent.on_session_switch("s2", rewound=True)
    agent.shutdown()
    for arguments in (["doctor"], ["status"], ["config", "show"], ["list", "rejected"], ["backfill"]):
        # Commands themselves assert that no secret is in what they say.
        life.commands.call(*arguments)
    quiet()
    assert {"psycopg", "hermes_memory_pgvector"} <= life.log.names(), "other people's loggers are awake too"


def test_an_outage_of_the_database(life: Life, proxy: Proxy, quiet: Callable[[], None]) -> None:
    life.talk(1)
    life.settle()
    for mode in ("refuse", "blackhole"):
        proxy.mode = mode
        proxy.cut()
        life.talk(2)
        wait_until(lambda: life.engine.writer.breaker.is_open)
        life.commands.call("status")
    proxy.mode = "pass"
    wait_until(lambda: life.has_arrived(2), seconds=60)
    quiet()


def test_a_server_that_ends_in_the_middle(life: Life, server: FaultyServer, quiet: Callable[[], None]) -> None:
    life.talk(1)
    life.settle()
    server.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", life.database.name)
    life.talk(2)
    server.stop()
    try:
        life.talk(3)
        wait_until(lambda: life.engine.writer.breaker.is_open)
    finally:
        server.start()
    wait_until(lambda: life.has_arrived(3), seconds=60)
    quiet()


def test_a_wrong_password(life: Life, quiet: Callable[[], None]) -> None:
    life.configure(password=WRONG_PASSWORD)
    life.talk(1)
    wait_until(lambda: life.engine.writer.breaker.is_open)
    for arguments in (["doctor"], ["status"], ["recall", "saffron"], ["migrate"], ["config", "get", "dsn"]):
        life.commands.call(*arguments)
    quiet()


@pytest.mark.parametrize(
    "dsn",
    [f"host=h password={WRONG_PASSWORD} {WRONG_PASSWORD}", f"postgresql://u:{WRONG_PASSWORD}@h:99999/db%zz"],
)
def test_a_connection_string_that_is_none(life: Life, quiet: Callable[[], None], dsn: str) -> None:
    life.commands.configure(dsn=dsn, **life.settings)
    life.talk(1)
    wait_until(lambda: life.engine.writer.breaker.is_open)
    for arguments in (["doctor"], ["status"], ["migrate"], ["config", "show"]):
        life.commands.call(*arguments)
    quiet()


@pytest.mark.parametrize(
    "trouble",
    [
        "ALTER TABLE memory_entries ADD CHECK (strpos(content, 'canary') = 0) NOT VALID",
        "ALTER TABLE conversations ADD CHECK (strpos(content, 'canary') = 0) NOT VALID",
        "ALTER TABLE conversations RENAME COLUMN content TO words",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {RUNTIME_ROLE}",
        "DROP TABLE pending_vectors CASCADE",
    ],
)
def test_a_database_that_refuses(life: Life, quiet: Callable[[], None], trouble: str) -> None:
    """The driver's message shows the failing row."""
    life.talk(1)
    life.settle()
    with psycopg.connect(life.database.owner_dsn, autocommit=True) as owner:
        owner.execute(trouble.encode())
    life.talk(2)

    def is_noticed() -> bool:
        engine = life.engine
        return engine.writer.breaker.is_open or engine.writer.dead > 0

    wait_until(is_noticed)
    life.commands.call("doctor")
    life.commands.call("list", "rejected")
    quiet()


FAILURES: tuple[Mode, ...] = ("500", "401", "400", "hang", "redirect", "garbage", "notjson", "nan", "wrongdim", "cut")


@pytest.mark.parametrize(
    "mode", some_of({mode: mode for mode in FAILURES}, "401", "hang", "redirect", "garbage", "nan")
)
def test_an_embedder_that_fails(life: Life, quiet: Callable[[], None], mode: Mode) -> None:
    life.endpoint.redirect_to = "http://127.0.0.1:9"
    life.endpoint.mode = mode
    life.talk(1)
    wait_until(lambda: life.engine.backlog.breaker.is_open, seconds=60)
    life.commands.call("status")
    life.endpoint.mode = "ok"
    wait_until(lambda: life.stored.count("pending_vectors") == 0, seconds=60)
    quiet()


@pytest.mark.parametrize(
    "settings",
    [
        {"embed_url": f"http://me:{KEY}@127.0.0.1:9"},
        {"embed_url": f"http://127.0.0.1:9/?api_key={KEY}"},
        {"embed_url": f"{KEY}@127.0.0.1:9"},
        {"embed_api_key_env": KEY},
        {"embed_dim": KEY, "journal_max_mb": f"postgresql://me:{WRONG_PASSWORD}@h/d"},
        {"embed_url": {"user": KEY}},
    ],
)
def test_settings_that_are_wrong(life: Life, quiet: Callable[[], None], settings: dict[str, Any]) -> None:
    life.configure(**settings)
    life.talk(1)
    life.settle()
    life.commands.call("doctor")
    life.commands.call("config", "show")
    quiet()


def test_keys_that_are_wrong(life: Life, quiet: Callable[[], None]) -> None:
    for key in (f"{KEY}-é", f"{KEY}-\x07", f"{KEY}-other"):
        life.configure(key=key)
        life.talk(1)
        wait_until(lambda: life.engine.backlog.breaker.is_open)
        life.commands.call("doctor")
    quiet()


def test_files_that_are_damaged(life: Life, quiet: Callable[[], None]) -> None:
    life.talk(1)
    life.settle()
    (life.path / "memories" / "MEMORY.md").write_bytes(FILE_ENTRY.encode() + b"\xff\xfe\x00 more\n")
    with (life.path / ".env").open("ab") as variables:
        variables.write(b"LATIN=\xe9" + OTHER_VARIABLE.encode())
    life.talk(2)
    document = (life.path / "config.yaml").read_text(encoding="utf-8")
    (life.path / "config.yaml").write_text(f"{document}\n  - [{OTHER_VARIABLE}: {{", encoding="utf-8")
    life.provider().sync_turn(TURN, REPLY, session_id="s1")
    life.commands.call("config", "show")
    quiet()


def test_words_that_are_no_words(life: Life, quiet: Callable[[], None]) -> None:
    class Stubborn:
        def __str__(self) -> str:
            raise ValueError(TURN)

        __repr__ = __iter__ = keys = get = __bool__ = __len__ = __str__

    strange: list[Any] = [Stubborn(), f"{TURN}\ud800", f"{TURN}\x00", {TURN: TURN}, [TURN], TURN.encode(), 10**5000]
    agent = life.provider()
    for words in strange:
        agent.sync_turn(words, words, session_id="s1", messages=[words, {"role": words, "content": words}])
        agent.on_memory_write("add", "memory", words, metadata=words)
        agent.on_memory_write(words, words, words)
        agent.on_delegation(words, words, child_session_id=words)
        agent.on_session_end([{"role": "user", "content": words}, words])
        agent.on_session_end(words)
        agent.prefetch(words)
        agent.on_turn_start(words, words)
        agent.handle_tool_call("recall_memory", {"query": words, "limit": words, "scope": words})
        agent.on_session_switch(words, parent_session_id=words)
    life.settle()
    quiet()


def test_a_journal_that_cannot_be_written(life: Life, quiet: Callable[[], None]) -> None:
    (life.path / "pgvector").mkdir()
    (life.path / "pgvector" / "journal").write_bytes(b"")
    with sqlite3.connect(life.path / "state.db") as store:
        store.execute("CREATE TABLE messages (id INTEGER, session_id TEXT, role TEXT, content TEXT, timestamp REAL)")
        store.execute("INSERT INTO messages VALUES (1, 's1', 'user', ?, 1)", (TURN,))
    life.talk(1)
    (life.path / "pgvector" / "journal").unlink()
    life.talk(2)
    wait_until(lambda: life.has_arrived(1))
    quiet()


def test_a_journal_that_is_damaged(life: Life, proxy: Proxy, quiet: Callable[[], None]) -> None:
    proxy.mode = "refuse"
    life.talk(1)
    wait_until(lambda: life.engine.writer.breaker.is_open)
    segment = next(
        path for path in (life.path / "pgvector" / "journal").iterdir() if MEMORY.encode() in path.read_bytes()
    )
    close_all(Deadline.after(1))
    content = segment.read_bytes()
    middle = content.index(MEMORY.encode())
    segment.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    os.utime(segment)
    proxy.mode = "pass"
    life.talk(2)
    wait_until(lambda: life.has_arrived(2))
    life.commands.call("doctor")
    quiet()
