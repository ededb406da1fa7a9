"""A wrong setting of the embedder costs vectors and nothing else: every write lands, words recall it, and it is told.

The homes of these tests are configured as an operator does it: in config.yaml, the environment and .env.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hermes_memory_pgvector import hook_guard
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.embedding import local
from hermes_memory_pgvector.embedding.configured import setting_fault
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.runtime.registry import close_all, engine_for
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from hermes_memory_pgvector.writer import embed_pending
from testing.cases import some_of
from testing.command import Commands
from testing.embed_server import EmbedServer
from testing.faulty import SURVIVES_A_STOP
from testing.postgres import DIM, MODEL, Database
from testing.stored import Stored
from testing.waiting import wait_until

CANARY = "sk-Canary-7f3a91"
KEY_VARIABLE = "TEST_EMBED_KEY"
ENDPOINT = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Wrong:
    """Settings with one fault, and the setting at fault."""

    names: str
    settings: dict[str, Any]
    key: str | None = None


WRONG = {
    "no scheme": Wrong("embed_url", {"embed_url": "localhost:11434"}),
    "an unset variable": Wrong("embed_url", {"embed_url": "${TEST_NOBODY_SETS_THIS}"}),
    "an unset variable in it": Wrong("embed_url", {"embed_url": "http://${TEST_NOBODY_SETS_THIS}:11434"}),
    "port too large": Wrong("embed_url", {"embed_url": "http://127.0.0.1:99999"}),
    "port no number": Wrong("embed_url", {"embed_url": "http://127.0.0.1:http"}),
    "port zero": Wrong("embed_url", {"embed_url": "http://127.0.0.1:0"}),
    "a user and a password": Wrong("embed_url", {"embed_url": f"http://me:{CANARY}@127.0.0.1:9"}),
    "a user": Wrong("embed_url", {"embed_url": f"http://{CANARY}@127.0.0.1:9"}),
    "a password without a scheme": Wrong("embed_url", {"embed_url": f"me:{CANARY}@127.0.0.1:9"}),
    "a password with a slash": Wrong("embed_url", {"embed_url": f"http://me:pass/{CANARY}@127.0.0.1:9"}),
    "a key in the query": Wrong("embed_url", {"embed_url": f"http://127.0.0.1:9/v1?api_key={CANARY}"}),
    "a token in the query": Wrong("embed_url", {"embed_url": f"http://127.0.0.1:9/v1?v=1&access-token={CANARY}"}),
    "another scheme": Wrong("embed_url", {"embed_url": "ftp://127.0.0.1/models"}),
    "the word none": Wrong("embed_url", {"embed_url": "none"}),
    "a number": Wrong("embed_url", {"embed_url": 11434}),
    "no host": Wrong("embed_url", {"embed_url": "http://"}),
    "only a port": Wrong("embed_url", {"embed_url": "http://:11434/v1"}),
    "a bracket left open": Wrong("embed_url", {"embed_url": "http://[::1:11434"}),
    "a space": Wrong("embed_url", {"embed_url": "http://127.0.0.1:9/my models"}),
    "a path in umlauts": Wrong("embed_url", {"embed_url": "http://127.0.0.1:9/für"}),
    "a host nobody can look up": Wrong("embed_url", {"embed_url": f"http://{'ü' * 80}.example"}),
    "openai without a url": Wrong("embed_url", {"embed_url": "", "embed_protocol": "openai"}),
    "ollama without a url": Wrong("embed_url", {"embed_url": "", "embed_protocol": "ollama"}),
    "a dimension the local model lacks": Wrong("embed_dim", {"embed_url": "", "embed_dim": 5}),
    "the same, local by name": Wrong("embed_dim", {"embed_protocol": "local", "embed_dim": 768}),
    "no model": Wrong("embed_model", {"embed_url": ENDPOINT, "embed_model": ""}),
    "a key of two lines": Wrong("embed_api_key_env", {"embed_url": ENDPOINT}, f"{CANARY}\nsecond"),
    "a key of other letters": Wrong("embed_api_key_env", {"embed_url": ENDPOINT}, f"{CANARY}-é"),
    "the key itself": Wrong("embed_api_key_env", {"embed_url": ENDPOINT, "embed_api_key_env": CANARY}),
}


@dataclass(frozen=True, slots=True)
class Home:
    """A hermes home whose configuration stands in its files."""

    commands: Commands
    database: Database
    good: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.commands.home

    @property
    def stored(self) -> Stored:
        return Stored(self.database.owner_dsn)

    @property
    def engine(self) -> Engine:
        return engine_for(self.path)[0]

    def configure(self, **settings: Any) -> None:
        self.commands.configure(**{"dsn": self.database.runtime_dsn, **self.good, **settings})

    def provider(self, session: str = "s1") -> PgvectorMemoryProvider:
        made = PgvectorMemoryProvider()
        made.initialize(
            session, hermes_home=str(self.path), platform="api_server", agent_context="primary",
            gateway_session_key="marketing", agent_identity="default", agent_workspace="hermes",
        )  # fmt: skip
        return made

    def with_vector(self) -> tuple[int, int]:
        memories = "SELECT count(*) FROM memory_entries_embedded WHERE embedding IS NOT NULL"
        return self.stored.turns_with_vector("marketing"), int(self.stored.rows(memories)[0][0])

    def settle(self) -> None:
        wait_until(lambda: self.engine.writer.flush(Deadline.after(1)))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_pending, "HOLD_SECONDS", 0.2)
    monkeypatch.setattr(embed_pending, "RETURN_PAUSE_SECONDS", 0.2)


@pytest.fixture
def endpoint() -> Iterator[EmbedServer]:
    with EmbedServer(DIM) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, database: Database, endpoint: EmbedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    good = {
        "embed_url": endpoint.url, "embed_model": MODEL, "embed_protocol": "openai", "embed_dim": DIM,
        "embed_api_key_env": KEY_VARIABLE, "turn_min_chars": 1,
    }  # fmt: skip
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    yield Home(Commands(tmp_path, [CANARY]), database, good)
    close_all(Deadline.after(10))


def misconfigure(home: Home, wrong: Wrong, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make the fault; return the variables a command needs to see the same."""
    # What a fault replaces is all there is of the embedder's settings, but for the model and the protocol.
    home.configure(**{"embed_dim": None, "embed_protocol": "auto", **wrong.settings})
    if wrong.key is None:
        return {}
    # The environment of a process is that of the home it was started for.
    monkeypatch.setenv("HERMES_HOME", str(home.path))
    monkeypatch.setenv(KEY_VARIABLE, wrong.key)
    return {KEY_VARIABLE: wrong.key}


def say(home: Home, number: int) -> PgvectorMemoryProvider:
    agent = home.provider()
    agent.on_turn_start(1, f"question {number} about saffron")
    agent.sync_turn(f"question {number} about saffron", f"answer {number} about saffron", session_id="s1")
    agent.on_memory_write("add", "memory", f"fact {number}: saffron comes from Crete", metadata={})
    agent.on_delegation(f"task {number}", f"result {number}", child_session_id="c1")
    return agent


# Beyond naming the fault, all wrong addresses take the same way: these go it to the end.
EVERYDAY = (
    "an unset variable", "a user and a password", "a key in the query", "openai without a url",
    "a dimension the local model lacks", "no model", "a key of two lines", "the key itself",
)  # fmt: skip


@pytest.mark.parametrize("wrong", some_of(WRONG, *EVERYDAY))
def test_every_write_lands_is_recalled_by_words_and_gets_its_vector_when_the_setting_is_right(
    home: Home, wrong: Wrong, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    variables = misconfigure(home, wrong, monkeypatch)
    with caplog.at_level(logging.DEBUG):
        agent = say(home, 1)
        home.settle()
        assert len(home.stored.turns("marketing")) == 3
        assert home.stored.memories("marketing") == [("memory", "fact 1: saffron comes from Crete")]
        assert "saffron comes from Crete" in home.provider("another").prefetch("where does saffron come from")
        found = json.loads(agent.handle_tool_call("recall_memory", {"query": "saffron"}))
        assert [hit["content"] for hit in found["results"]] == ["fact 1: saffron comes from Crete"]
        wait_until(lambda: home.engine.backlog.breaker.is_open)
    assert home.with_vector() == (0, 0)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line for line in told if wrong.names in line] == told, "nothing else is out of order"
    assert len(told) == 1, "one line says it"
    assert CANARY not in caplog.text

    doctor = home.commands.call("doctor", "--json", variables=variables).json
    (finding,) = [each for each in doctor["checks"] if each["name"] == "embedder"]
    assert (finding["level"], wrong.names in finding["text"]) == ("problem", True)
    status = home.commands.call("status", variables=variables)
    assert (status.code, wrong.names in status.out) == (0, True)
    shown = home.provider().get_status_config({})
    assert wrong.names in shown["embedding"]
    assert CANARY not in str(shown)

    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    home.configure()
    home.provider()
    wait_until(lambda: home.with_vector() == (3, 1))


def test_every_fault_is_named_by_its_setting_and_never_by_its_secret(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    for name, wrong in WRONG.items():
        commands.configure(**{"embed_model": MODEL, "embed_api_key_env": KEY_VARIABLE, **wrong.settings})
        if wrong.key is not None:
            (commands.home / ".env").write_text(f"{KEY_VARIABLE}='{wrong.key}'\n", encoding="utf-8")
        fault = setting_fault(commands.home, settings_file.load(commands.home).settings)
        assert wrong.names in fault, name
        assert CANARY not in fault, name


def test_a_local_model_that_is_not_installed_costs_the_vectors_only(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local, "_PACKAGE", "wordllama_is_not_installed")
    monkeypatch.setattr(local, "_load", functools.cache(local._load.__wrapped__))
    home.configure(embed_url="", embed_dim=None, embed_protocol="auto")
    agent = say(home, 1)
    home.settle()
    assert len(home.stored.turns("marketing")) == 3
    assert "Crete" in home.provider("another").prefetch("where does saffron come from")
    assert "not installed" in caplog.text
    assert agent.is_available()
    doctor = home.commands.call("doctor", "--json").json
    (finding,) = [each for each in doctor["checks"] if each["name"] == "embedder"]
    assert "embed_url" in finding["hint"]


def test_a_key_corrected_in_env_is_used_without_a_restart(
    home: Home, endpoint: EmbedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The settings stay the same, so the engine does too."""
    variables = home.path / ".env"
    home.configure()
    variables.write_text(f"{KEY_VARIABLE}={CANARY}-\x07-bell\n", encoding="utf-8")
    say(home, 1)
    engine = home.engine
    home.settle()
    wait_until(lambda: engine.backlog.breaker.is_open)
    endpoint.require_key = "right"
    variables.write_text(f"{KEY_VARIABLE}=wrong\n", encoding="utf-8")
    wait_until(lambda: any(request.headers.get("authorization") == "Bearer wrong" for request in endpoint.requests))
    variables.write_text(f"{KEY_VARIABLE}=right\n", encoding="utf-8")
    wait_until(lambda: home.with_vector() == (3, 1))
    assert home.engine is engine
    assert CANARY not in caplog.text


def test_the_agent_is_told_why_words_alone_answer(home: Home) -> None:
    home.configure(embed_url="localhost:11434")
    agent = say(home, 1)
    home.settle()
    wait_until(lambda: home.engine.backlog.breaker.is_open)
    assert "embed" in home.provider().system_prompt_block()
    assert "by words" in home.provider().system_prompt_block()
    assert agent.is_available()


def test_the_vectors_of_a_wrong_setting_wait_and_the_rest_of_migrate_is_done(
    home: Home, empty_database: Database
) -> None:
    bare = Home(home.commands, empty_database, home.good)
    bare.configure(dsn=empty_database.owner_dsn, embed_url="localhost:11434")
    done = bare.commands.call("migrate", "--runtime-role", "hermes_runtime")
    assert (done.code, "embed_url" in done.everything) == (3, True)
    say(bare, 1)
    bare.settle()
    assert len(bare.stored.turns("marketing")) == 3


def test_a_postgres_of_its_own_gets_tables_rows_and_then_vectors_by_itself(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    server = EmbeddedPostgres(commands.home / "pgvector", extra_settings=SURVIVES_A_STOP)
    try:
        info = server.ensure_running(Deadline.after(120))
        home = Home(commands, Database(info.owner_dsn, info.runtime_dsn, ""))
        commands.configure(embed_url="localhost:11434", turn_min_chars=1)
        say(home, 1)
        wait_until(lambda: home.engine.writer.flush(Deadline.after(1)), seconds=120)
        assert len(home.stored.turns("marketing")) == 3
        assert home.stored.count("embedding_models") == 0
        commands.configure(turn_min_chars=1)
        home.provider()
        wait_until(lambda: home.stored.count("embedding_models") == 1, seconds=120)
        wait_until(lambda: home.with_vector() == (3, 1), seconds=60)
    finally:
        close_all(Deadline.after(10))
        server.stop(Deadline.after(60), mode="immediate")


def variants(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Some of the faults above."""
    return pytest.mark.parametrize("wrong", [WRONG[name] for name in names], ids=names)


@variants(
    "a user and a password", "a user", "a password without a scheme", "a password with a slash", "a key in the query",
    "a token in the query", "the key itself",
)  # fmt: skip
def test_nothing_shows_a_credential_and_saving_what_is_shown_changes_nothing(
    home: Home, wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    misconfigure(home, wrong, monkeypatch)
    before = home.path.joinpath("config.yaml").read_text(encoding="utf-8")
    for arguments in (
        ["config", "show"], ["config", "show", "--json"], ["config", "get", wrong.names],
        ["config", "get", wrong.names, "--json"], ["status"], ["status", "--json"], ["doctor"], ["doctor", "--json"],
        ["recall", "anything"], ["backfill"], ["list", "rejected"],
    ):  # fmt: skip
        # Commands themselves assert that no secret is in what they say.
        home.commands.call(*arguments)
    agent = home.provider()
    fields = {entry["key"]: entry["default"] for entry in agent.get_config_schema() if "default" in entry}
    assert CANARY not in str((fields, agent.get_status_config({}), agent.unavailable_reason()))
    agent.save_config(fields, str(home.path))
    assert home.path.joinpath("config.yaml").read_text(encoding="utf-8") == before
    shown = home.commands.call("config", "get", wrong.names).out.strip()
    home.commands.call("config", "set", wrong.names, shown)
    assert home.path.joinpath("config.yaml").read_text(encoding="utf-8") == before


@variants("no scheme", "a user and a password", "a key in the query", "another scheme", "a bracket left open")
def test_a_wrong_address_is_refused_where_it_is_set(home: Home, wrong: Wrong) -> None:
    home.configure()
    before = home.path.joinpath("config.yaml").read_text(encoding="utf-8")
    url = str(wrong.settings["embed_url"])
    done = home.commands.call("config", "set", "embed_url", url)
    assert (done.code, "embed_url" in done.err, "nothing was changed" in done.err) == (1, True, True)
    with pytest.raises(Exception, match="embed_url") as caught:
        home.provider().save_config({"embed_url": url}, str(home.path))
    assert CANARY not in str(caught.value)
    assert home.path.joinpath("config.yaml").read_text(encoding="utf-8") == before


def test_a_reference_to_a_variable_may_be_set_before_the_variable(home: Home) -> None:
    home.configure()
    assert home.commands.call("config", "set", "embed_url", "${LATER}").code == 0
    assert home.commands.config["memory"]["pgvector"]["embed_url"] == "${LATER}"


def test_a_credential_in_the_wrong_setting_is_not_repeated(
    home: Home, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process says it once, and another test of this one may have had the same mistake.
    monkeypatch.setattr(hook_guard, "_warned", set())
    home.configure(journal_max_mb=f"postgresql://me:{CANARY}@host/db", embed_url=[f"http://me:{CANARY}@host"])
    agent = home.provider()
    home.commands.call("config", "show")
    home.commands.call("doctor")
    assert "journal_max_mb" in caplog.text
    assert CANARY not in caplog.text + str(agent.get_status_config({}))


def test_an_address_that_is_right_is_shown_as_it_is(home: Home) -> None:
    for url in ("https://host.example/v1", "https://gateway.example/@cf/baai/bge", "http://[::1]:11434"):
        home.configure(embed_url=url)
        assert home.commands.call("config", "get", "embed_url").out == f"{url}\n"
    home.configure(embed_url="https://host.example/openai?api-version=2024-02-01&tenant=blue")
    shown = home.commands.call("config", "get", "embed_url").out
    assert shown == "https://host.example/openai?api-version=2024-02-01&tenant=***\n"
