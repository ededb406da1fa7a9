"""Profiles behind one gateway: each has its own database, keys and vectors, and they share threads and connections."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.ops.setup import plugin_folder
from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import ConnectionInfo
from testing.cases import some_of
from testing.embed_server import EmbedServer
from testing.hermes import MakeHome, install_probe
from testing.hermes_home import NO_LISTENER, PROFILE_KEY, HermesHome, write_variables
from testing.hermes_servers import free_port, threads_of_ours
from testing.llm_server import Call, Say, ScriptedLLM
from testing.postgres import DIM, MODEL, Database, new_database
from testing.stored import Stored
from testing.waiting import wait_until

SERVES_SEVERAL = {"gateway": {"multiplex_profiles": True}}
DSN, KEY = "HERMES_PGVECTOR_DSN", "KEY_OF_THE_EMBEDDER"
OTHERS_ROLE, OTHERS_PASSWORD = "agents_of_the_coder", "a-password-of-the-coder-alone"
NO_SCOPES = """
import types
import agent
# What a plugin gets from a host that keeps no variables apart; the host itself goes on with its own.
agent.secret_scope = types.ModuleType("agent.secret_scope")
def handle(event_type, context):
    pass
"""
MANAGER = "a secret manager"
MANAGED = """
import json, pathlib
from agent import secret_scope
of_the_file = secret_scope.build_profile_secret_scope
def build(home):
    # As newer hosts do: what a secret manager holds for a home is in its scope, and nowhere else.
    managed = pathlib.Path(home) / "managed.json"
    return {**of_the_file(home), **(json.loads(managed.read_text()) if managed.exists() else {})}
secret_scope.build_profile_secret_scope = build
def handle(event_type, context):
    pass
"""
ARRANGEMENTS = {
    f"launch {launch}, other {other}, {'scope' if scope else 'no scope'}": (launch, other, scope)
    for launch, other, scope in itertools.product(
        (".env", "config.yaml"), (".env", "config.yaml", MANAGER), (True, False)
    )
    if scope or other != MANAGER
}
PROFILES = 20


@dataclass(frozen=True, slots=True)
class Side:
    """What belongs to one of the two homes."""

    profile: str | None
    theme: str
    stored: Stored
    embedder: EmbedServer

    def has_arrived(self) -> bool:
        """Whether its turn has a vector, and its memory is there."""
        kept = [("memory", self.words("keeps"))]
        return self.stored.turns_with_vector(self.theme) == 2 and self.stored.memories(self.theme) == kept

    def words(self, what: str) -> str:
        return f"The {self.theme} profile {what} the release calendar of the northern team."


@pytest.fixture
def others_database(postgres_server: ConnectionInfo) -> Iterator[Database]:
    """A database with agents and a password of its own."""
    role = psycopg.sql.Identifier(OTHERS_ROLE)
    with psycopg.connect(postgres_server.owner_dsn, autocommit=True) as admin:
        with new_database(postgres_server) as made:
            admin.execute(psycopg.sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, OTHERS_PASSWORD))
            migrate.apply(made.owner_dsn, runtime_role=OTHERS_ROLE, model=NewModel(MODEL, DIM, 0.0, 0.125))
            admin.execute(
                psycopg.sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(psycopg.sql.Identifier(made.name), role)
            )
            yield made
        admin.execute(psycopg.sql.SQL("DROP ROLE {}").format(role))


def make_profile(home: HermesHome, name: str, **settings: Any) -> Path:
    """A profile that differs from the root home in these settings."""
    folder = home.path / "profiles" / name
    folder.mkdir(parents=True)
    document = home.config
    document["memory"]["pgvector"].update(settings)
    (folder / "config.yaml").write_text(yaml.safe_dump(document | NO_LISTENER), encoding="utf-8")
    write_variables(folder, PROFILE_KEY)
    plugin_folder.install(folder)
    return folder


@pytest.mark.parametrize("arrangement", some_of(ARRANGEMENTS, "launch .env, other config.yaml, scope"))
def test_two_profiles_on_two_databases_share_neither_rows_nor_keys(
    make_home: MakeHome, others_database: Database, llm: ScriptedLLM, arrangement: tuple[str, str, bool]
) -> None:
    launch, other, scope = arrangement
    with EmbedServer(dim=DIM) as own_embedder, EmbedServer(dim=DIM) as others_embedder:
        own_embedder.require_key, others_embedder.require_key = "key-of-the-launch-home", "key-of-the-coder"
        where = {"embed_url": own_embedder.url, "embed_api_key_env": KEY}
        variables = {KEY: own_embedder.require_key}
        home = make_home(sections=SERVES_SEVERAL, environment=variables, **where)
        others = {KEY: others_embedder.require_key}
        others_dsn = make_conninfo(others_database.runtime_dsn, user=OTHERS_ROLE, password=OTHERS_PASSWORD)
        coder = make_profile(home, "coder", embed_url=others_embedder.url, dsn=others_dsn)
        if launch == ".env":
            variables[DSN] = home.dsn
            remove_dsn(home.path)
        if other != "config.yaml":
            others[DSN] = others_dsn
            remove_dsn(coder)
        if other == MANAGER:
            (coder / "managed.json").write_text(json.dumps(others), encoding="utf-8")
            install_hook(home, MANAGED)
        else:
            write_variables(coder, PROFILE_KEY | others)
        if not scope:
            install_hook(home, NO_SCOPES)
        sides = (
            Side(None, "hermes", home.stored, own_embedder),
            Side("coder", "coder", Stored(others_database.owner_dsn), others_embedder),
        )
        with home.gateway() as gateway:
            for side in sides:
                note = Call("memory", {"action": "add", "target": "memory", "content": side.words("keeps")})
                llm.when(side.words("notes"), note, Say(side.words("has noted")))
                gateway.chat(side.words("notes"), profile=side.profile)
            for side in sides:
                wait_until(side.has_arrived)
        for side, stranger in (sides, sides[::-1]):
            assert side.stored.themes() == {side.theme}
            assert f"The {stranger.theme} profile" not in side.stored.everything()
            assert not any(f"The {stranger.theme} profile" in text for text in side.embedder.texts)
            keys = {request.headers.get("authorization") for request in side.embedder.requests}
            assert keys == {f"Bearer {side.embedder.require_key}"}


def install_hook(home: HermesHome, source: str) -> None:
    """A hook that changes what the host keeps for a home, at its start."""
    folder = home.path / "hooks" / "apart"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text("name: apart\nevents: ['gateway:startup']\n", encoding="utf-8")
    (folder / "handler.py").write_text(source, encoding="utf-8")


def remove_dsn(home: Path) -> None:
    """The config.yaml of a home names no database any more."""
    file = home / "config.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    del document["memory"]["pgvector"]["dsn"]
    file.write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.mark.large
def test_twenty_profiles_share_threads_and_connections(make_home: MakeHome) -> None:
    port = free_port()
    home = make_home(sections=SERVES_SEVERAL, environment={"PROBE_PORT": str(port)})
    install_probe(home)
    names = [f"profile{number}" for number in range(PROFILES)]
    for name in names:
        make_profile(home, name)
    most_threads: list[str] = []
    most_connections = 0
    with home.gateway() as gateway, ThreadPoolExecutor(8) as asking, ThreadPoolExecutor(1) as background:

        def ask(number: int) -> None:
            name = names[number % PROFILES]
            gateway.chat(f"Question {number}: what does {name} have in stock in hall {number * 7}?", profile=name)

        def load() -> None:
            list(asking.map(ask, range(2 * PROFILES)))

        running = background.submit(load)
        while not running.done():
            most_threads = max(most_threads, threads_of_ours(port), key=len)
            most_connections = max(most_connections, home.stored.connections())
            wait([running], timeout=0.2)
        running.result()
        wait_until(lambda: home.stored.count("conversations") >= 4 * PROFILES, seconds=60)
    assert home.stored.count("conversations") == 4 * PROFILES
    assert home.stored.themes() == set(names)
    assert 0 < len(most_threads) <= 8, most_threads
    assert 0 < most_connections <= 4
