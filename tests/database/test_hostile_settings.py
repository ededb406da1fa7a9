"""Settings of a database, a role or an environment that are not ours: words stay words, and nothing is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hermes_memory_pgvector.ops.setup.checks import examine
from hermes_memory_pgvector.runtime import refusals
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from testing.agent import AgentHome
from testing.command import Commands, with_password
from testing.host_state import host_state
from testing.postgres import Database, new_database

QUESTION = "Kostet die Brücke wirklich 5 € — oder mehr? 北京 の橋 \\ 'x' \"y\""
ANSWER = "Сорок евро: naïve façade, Ærø, \U0001f309 and a back\\slash."
MEMORY = "Grüße an Zoë: 5 € für Łódź, 橋は北 \\n 'x'"

SETTINGS = {
    "DateStyle German": ("DateStyle", "German, DMY"),
    "DateStyle SQL": ("DateStyle", "SQL, DMY"),
    "DateStyle Postgres": ("DateStyle", "Postgres, MDY"),
    "array_nulls": ("array_nulls", "off"),
    "client_encoding LATIN1": ("client_encoding", "LATIN1"),
    "client_encoding SQL_ASCII": ("client_encoding", "SQL_ASCII"),
    "IntervalStyle": ("IntervalStyle", "sql_standard"),
    "TimeZone": ("TimeZone", "Pacific/Chatham"),
    "standard_conforming_strings": ("standard_conforming_strings", "off"),
    "backslash_quote": ("backslash_quote", "off"),
    "extra_float_digits": ("extra_float_digits", "-15"),
    "bytea_output": ("bytea_output", "escape"),
    "transform_null_equals": ("transform_null_equals", "on"),
    "quote_all_identifiers": ("quote_all_identifiers", "on"),
    "lc_numeric": ("lc_numeric", "C"),
    "xmlbinary": ("xmlbinary", "hex"),
    "default_transaction_isolation": ("default_transaction_isolation", "serializable"),
    "enable_indexscan": ("enable_indexscan", "off"),
    "enable_seqscan": ("enable_seqscan", "off"),
    "jit": ("jit_above_cost", "0"),
    "synchronous_commit": ("synchronous_commit", "off"),
    "default_text_search_config": ("default_text_search_config", "pg_catalog.german"),
    "plan_cache_mode": ("plan_cache_mode", "force_generic_plan"),
    "escape_string_warning": ("escape_string_warning", "off"),
    "work_mem": ("work_mem", "64kB"),
    "lc_messages": ("lc_messages", "POSIX"),
    "restrict_nonsystem_relation_kind": ("restrict_nonsystem_relation_kind", "view"),
}
EVERYDAY = {
    "DateStyle German", "DateStyle SQL", "array_nulls", "client_encoding LATIN1", "standard_conforming_strings",
    "TimeZone", "default_transaction_isolation",
}  # fmt: skip


def is_remembered(home: AgentHome) -> None:
    """Words that were said are stored as they were said, and recalled with their time."""
    agent = home.provider("marketing", "s1")
    agent.sync_turn(QUESTION, ANSWER, session_id="s1")
    agent.on_memory_write("add", "memory", MEMORY)
    home.settle()
    assert [content for *_, content in home.stored.turns("marketing")] == [QUESTION, ANSWER]
    assert home.stored.memories("marketing") == [("memory", MEMORY)]
    other = home.provider("marketing", "s2")
    for tool, asked, said in (
        ("recall_conversation", "die Brücke kostet", QUESTION),
        ("recall_memory", "Grüße für Łódź", MEMORY),
    ):
        (hit,) = json.loads(other.handle_tool_call(tool, {"query": asked, "limit": 1}))["results"]
        assert hit["content"] == said
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", hit["ts"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(
            *setting,
            id=name,
            marks=[
                *([] if name in EVERYDAY else [pytest.mark.large]),
            ],
        )
        for name, setting in SETTINGS.items()
    ],
)
def test_words_are_stored_and_recalled_whatever_the_database_is_set_to(
    agent_home: AgentHome, database: Database, name: str, value: str
) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        parts = sql.Identifier(database.name), sql.Identifier(name), sql.Literal(value)
        try:
            owner.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(*parts))
        except psycopg.errors.UndefinedObject:
            return  # newer than this server
    is_remembered(agent_home)


def set_for_role(database: Database, name: str, value: str) -> None:
    """As somebody sets up a role, which counts for more than what the database is set to."""
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        parts = sql.Identifier(RUNTIME_ROLE), sql.Identifier(database.name), sql.Identifier(name), sql.Literal(value)
        owner.execute(sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(*parts))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "client_encoding LATIN1" else pytest.mark.large)
        for name in sorted({*EVERYDAY, "client_encoding SQL_ASCII", "bytea_output"})
    ],
)
def test_words_are_exported_and_forgotten_whatever_the_role_is_set_to(
    agent_home: AgentHome, database: Database, tmp_path: Path, name: str
) -> None:
    set_for_role(database, *SETTINGS[name])
    is_remembered(agent_home)
    agent_home.close()
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_on_write=False)
    file = tmp_path / "out.jsonl"
    done = commands.call("export", "--output", str(file))
    assert done.code == 0, done.everything
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert {QUESTION, ANSWER, MEMORY} <= {line.get("content") for line in lines}
    for words in ("Brücke wirklich", "naïve façade", "Grüße an Zoë"):
        done = commands.call("forget", "--match", words, "--execute")
        assert done.code == 0, done.everything
    assert agent_home.stored.turns("marketing") == []
    assert agent_home.stored.memories("marketing") == []


def test_a_role_whose_deletes_would_leave_vectors_behind_is_refused_with_a_sentence(
    configured: Commands, database: Database
) -> None:
    set_for_role(database, "session_replication_role", "replica")
    (found,) = [each for each in configured.call("doctor", "--json").json["checks"] if each["name"] == "schema"]
    assert found["level"] == "problem"
    assert "session_replication_role = replica" in found["text"]
    done = configured.call("forget", "--match", "anybody", "--execute")
    assert done.code == 1
    assert "vectors would outlive their rows" in done.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("PGCLIENTENCODING", "LATIN1"),
        pytest.param("PGDATESTYLE", "German"),
        pytest.param("PGTZ", "Pacific/Chatham"),
        pytest.param("PGOPTIONS", "-c array_nulls=off", marks=pytest.mark.large),
    ],
)
def test_words_are_stored_and_recalled_whatever_the_environment_says(
    agent_home: AgentHome, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    is_remembered(agent_home)


@pytest.mark.parametrize("encoding", ["LATIN1", pytest.param("SQL_ASCII", marks=pytest.mark.large)])
def test_a_database_of_another_encoding_is_refused_with_a_sentence_that_helps(
    postgres_server: ConnectionInfo, tmp_path: Path, encoding: str
) -> None:
    with new_database(postgres_server) as near, psycopg.connect(postgres_server.owner_dsn, autocommit=True) as admin:
        name = f"{near.name}_{encoding.lower()}"
        made = "CREATE DATABASE {} ENCODING {} LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0"
        admin.execute(sql.SQL(made).format(sql.Identifier(name), sql.Literal(encoding)))
        try:
            runtime, password = with_password(make_conninfo(near.runtime_dsn, dbname=name))
            commands = Commands(tmp_path, [password])
            commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_on_write=False)
            owner = make_conninfo("", **{**conninfo_to_dict(postgres_server.owner_dsn), "dbname": name})
            done = commands.call("migrate", "--admin-dsn", owner)
            assert done.code != 0
            assert "UTF8" in done.everything
            assert encoding in done.everything
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def configured(database: Database, tmp_path: Path) -> Commands:
    """The commands of a home whose database has its schema, with no endpoint to ask."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_on_write=False)
    return made


def test_doctor_says_that_a_database_takes_no_writes(configured: Commands, database: Database) -> None:
    def finding() -> dict[str, object]:
        (found,) = [each for each in configured.call("doctor", "--json").json["checks"] if each["name"] == "database"]
        return dict(found)

    assert finding()["level"] == "ok"
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    found = finding()
    assert (found["level"], found["is_unreachable"]) == ("problem", False)
    assert "takes no writes: transactions are read-only there" in str(found["text"])


def test_a_search_path_that_leads_elsewhere_is_named(configured: Commands, database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {database.name} SET search_path = pg_catalog")
    (found,) = [each for each in configured.call("doctor", "--json").json["checks"] if each["name"] == "schema"]
    assert found["level"] == "problem"
    assert 'our tables are in the schema "public"' in found["text"]
    assert "(pg_catalog) does not lead" in found["text"]


PHONE = "agent:main:telegram:dm:4915100000000"


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda key: b"\0" * len(key), id="zeroed"),
        pytest.param(lambda _: None, id="missing"),
        pytest.param(lambda key: key[:20] + (b"1" if key[20:21] == b"0" else b"0") + key[21:], id="another digit"),
        pytest.param(lambda _: b"", id="empty", marks=pytest.mark.large),
        pytest.param(lambda key: key[:20], id="cut", marks=pytest.mark.large),
    ],
)
def test_a_damaged_identity_key_makes_no_new_person_and_loses_no_words(
    agent_home: AgentHome, tmp_path: Path, damage: object
) -> None:
    assert callable(damage)
    agent_home.provider(PHONE, "s1", platform="telegram").sync_turn("The first words", "Noted first", session_id="s1")
    agent_home.settle()
    (person,) = agent_home.stored.themes()
    agent_home.close()
    (key,) = agent_home.path.rglob("identity.key")
    whole = key.read_bytes()
    damaged = damage(whole)
    key.unlink()
    if damaged is not None:
        key.write_bytes(damaged)
    told: list[str] = []
    agent = agent_home.provider(PHONE, "s2", platform="telegram", warning_callback=told.append)
    agent.sync_turn("The second words", "Noted second", session_id="s2")
    assert "identity.key" in told[0]
    findings = list(examine(agent_home.path))
    assert [each.level for each in findings if each.name == "identity key"] == ["problem"]
    agent_home.close()
    assert agent_home.stored.themes() == {person}
    left = refusals.left(agent_home.engine.folder)
    assert left is not None
    assert (left.turns, refusals.command(left).partition(" --")[0]) == (2, "import state")
    key.write_bytes(whole)
    agent_home.provider(PHONE, "s3", platform="telegram").sync_turn("The third words", "Noted third", session_id="s3")
    agent_home.settle()
    with host_state(agent_home.path) as state:
        state.session("s2", "telegram", session_key=PHONE, ended_at=1)
        state.exchange("s2", "The second words", "Noted second")
    runtime, password = with_password(agent_home.dsn)
    settings = {"dsn": runtime, "turn_min_chars": 1, "embed_on_write": False}
    (agent_home.path / "config.yaml").write_text(json.dumps({"memory": {"pgvector": settings}}), encoding="utf-8")
    brought = Commands(tmp_path, [password]).call("import", "state", "--execute", "--hermes-home", str(agent_home.path))
    assert brought.code == 0, brought.everything
    assert agent_home.stored.themes() == {person}
    assert len(agent_home.stored.turns(person)) == 6


def test_somebody_is_not_forgotten_by_a_name_that_a_new_key_would_make(agent_home: AgentHome, tmp_path: Path) -> None:
    agent_home.provider(PHONE, "s1", platform="telegram").sync_turn("The first words", "Noted first", session_id="s1")
    agent_home.settle()
    (person,) = agent_home.stored.themes()
    agent_home.close()
    for name in ("identity.key", "identity.check"):
        next(agent_home.path.rglob(name)).unlink()
    runtime, password = with_password(agent_home.dsn)
    settings = {"dsn": runtime, "embed_on_write": False}
    (agent_home.path / "config.yaml").write_text(json.dumps({"memory": {"pgvector": settings}}), encoding="utf-8")
    commands = Commands(tmp_path, [password])
    refused = commands.call("forget", "--user", PHONE, "--execute", "--hermes-home", str(agent_home.path))
    assert refused.code == 1
    assert "identity.key" in refused.err
    assert not list(agent_home.path.rglob("identity.key"))
    done = commands.call("forget", "--user", person, "--execute", "--hermes-home", str(agent_home.path))
    assert done.code == 0, done.everything
    assert agent_home.stored.themes() == set()


# What keeps anybody from writing, from connecting, or only shows what the server was built with.
NOT_SWEPT = {
    "default_transaction_read_only", "transaction_read_only", "transaction_isolation", "transaction_deferrable",
    "session_authorization", "role", "is_superuser", "seed", "in_hot_standby", "session_replication_role",
    "zero_damaged_pages", "ignore_checksum_failure", "ignore_system_indexes", "allow_system_table_mods",
}  # fmt: skip
OTHERS = """
SELECT name, vartype, setting, min_val, max_val, enumvals FROM pg_settings
WHERE context IN ('user', 'superuser') AND vartype IN ('bool', 'enum', 'integer', 'real') AND name <> ALL (%s)
ORDER BY name
"""


def other_values(kind: str, now: str, least: str | None, most: str | None, choices: list[str] | None) -> list[str]:
    """What a setting may have besides its present value: every choice, or the ends of its range."""
    if kind == "bool":
        return ["off" if now == "on" else "on"]
    found = choices if kind == "enum" else [least, most]
    return [value for value in found or () if value is not None and value != now]


@pytest.mark.large
@pytest.mark.parametrize("part", range(4))
def test_no_setting_of_a_database_changes_a_word(database: Database, tmp_path: Path, part: int) -> None:
    wrong: list[str] = []
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        rows = owner.execute(OTHERS, (list(NOT_SWEPT),)).fetchall()
        cases = [(name, value) for name, *more in rows for value in other_values(*more)]
        for number, (name, value) in enumerate(cases[part::4]):
            one = sql.Identifier(database.name), sql.Identifier(name)
            home = AgentHome.create(tmp_path / str(number), database)
            try:
                owner.execute(sql.SQL("ALTER DATABASE {} SET {} = {}").format(*one, sql.Literal(value)))
                is_remembered(home)
            except psycopg.errors.InvalidParameterValue:
                pass  # more than this machine has
            except (AssertionError, ValueError, psycopg.Error) as error:
                wrong.append(f"{name} = {value}: {type(error).__name__} {str(error)[:200]}")
            finally:
                home.close()
                owner.execute(sql.SQL("ALTER DATABASE {} RESET {}").format(*one))
                owner.execute("TRUNCATE conversations, memory_entries, memory_operations CASCADE")
    assert wrong == []
