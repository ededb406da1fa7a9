"""Settings are declared once; wrong values are reported and never stop anything."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector import files
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.redaction import redact_dsn, redact_url
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS, Parsed, parse
from hermes_memory_pgvector.config.watched import QUIET_SECONDS
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.provider import host_config
from testing.waiting import wait_until


def write(home: Path, text: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(text, encoding="utf-8")
    return home


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dsn", ""), ("embed_url", ""), ("embed_model", "nomic-embed-text"), ("embed_protocol", "auto"),
        ("prefetch_limit", 5), ("min_similarity", 0.0), ("embed_on_write", True), ("scope_default", "current"),
        ("hybrid_search", True), ("write_queue_maxsize", 256), ("bulk_sync_on_init", True), ("sync_turns", True),
        ("turn_min_chars", 40), ("prefetch_budget", 2.0),
    ],
)  # fmt: skip
def test_defaults_are_those_users_know(name: str, value: object) -> None:
    assert DEFAULTS[name] == value


PUBLISHED = {
    "dsn": "dbname=hermes_memory user=hermes host=/var/run/postgresql connect_timeout=5",
    "embed_url": "http://localhost:11434", "embed_model": "nomic-embed-text", "embed_dim": 768,
    "embed_api_key_env": None, "embed_protocol": "auto", "prefetch_limit": 5, "min_similarity": 0.30,
    "embed_on_write": True, "scope_default": "current", "hybrid_search": True, "write_queue_maxsize": 256,
    "bulk_sync_on_init": True, "sync_turns": True, "turn_min_chars": 40, "allowed_themes": None,
    "identity_aliases": {}, "bench_mode": "bucket", "conversation_embed_policy": "all", "ttl_days": 0,
    "embed_write_retries": 2, "embed_write_backoff": 0.1, "embed_timeout": 5.0, "embed_write_timeout": 30.0,
    "prefetch_budget": 5.0, "write_contexts": "primary,cron", "shutdown_drain_timeout": 5.0,
}  # fmt: skip
"""Every setting of hermes-memory-pgvector 1.0.0, with its default."""


def test_a_file_with_every_setting_of_the_published_package_is_right(tmp_path: Path) -> None:
    home = write(tmp_path, yaml.safe_dump({"memory": {"pgvector": PUBLISHED}}))
    assert settings_file.load(home).problems == ()


def test_every_setting_has_help_and_a_default_its_parser_accepts() -> None:
    for name, declaration in DECLARATIONS.items():
        assert declaration.help.endswith((".", "page.")), name
        default = DEFAULTS[name]
        if not isinstance(default, tuple):
            assert declaration.parse(default) == default, name


def test_strings_from_the_wizard_parse() -> None:
    parsed = parse(
        {"file": {"sync_turns": "false", "prefetch_limit": "7", "min_similarity": "0.5", "embed_dim": "768"}}
    )
    assert not parsed.problems
    settings = parsed.settings
    assert (settings.sync_turns, settings.prefetch_limit, settings.min_similarity, settings.embed_dim) == (
        False,
        7,
        0.5,
        768,
    )


def test_all_wrong_values_are_reported_by_name_and_replaced_by_defaults() -> None:
    parsed = parse(
        {"file": {"prefetch_limit": "many", "sync_turns": "perhaps", "embed_protocol": "grpc", "journal_max_mb": 3}}
    )
    assert len(parsed.problems) == 3
    assert all(
        any(name in line for line in parsed.problems) for name in ("prefetch_limit", "sync_turns", "embed_protocol")
    )
    assert parsed.settings.prefetch_limit == 5
    assert parsed.settings.journal_max_mb == 3


@pytest.mark.parametrize("value", [float("nan"), True, None, [], {}, "1e400", 10**400, -1, 51, 2.5])
def test_no_value_makes_the_parser_raise(value: object) -> None:
    assert parse({"file": {"prefetch_limit": value}}).settings.prefetch_limit == 5


def test_a_wrong_dsn_is_not_repeated_in_the_report() -> None:
    problems = parse({"file": {"dsn": ["password=hunter2"]}}).problems
    assert problems
    assert "hunter2" not in problems[0]


def test_later_layers_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write(
        tmp_path,
        "plugins: {pgvector: {prefetch_limit: 1, turn_min_chars: 11, recency_half_life_days: 3}}\n"
        "memory: {pgvector: {prefetch_limit: 2, turn_min_chars: 12}}\n",
    )
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HERMES_PGVECTOR_TURN_MIN_CHARS", "13")
    settings = settings_file.load(home, {"journal_max_mb": 9}).settings
    assert (
        settings.recency_half_life_days,
        settings.prefetch_limit,
        settings.turn_min_chars,
        settings.journal_max_mb,
    ) == (
        3,
        2,
        13,
        9,
    )
    assert settings.set_by["turn_min_chars"] == "environment"
    assert settings.set_by["recency_half_life_days"] == "plugins.pgvector"


@pytest.mark.parametrize(
    "text",
    ["", "memory:\n", "memory: 5\n", "[1, 2]\n", "a: b: c", "memory: {pgvector: nonsense}\n", "\ufeffmemory: {}\n"],
)
def test_a_broken_config_file_gives_defaults_and_a_problem_at_most(tmp_path: Path, text: str) -> None:
    parsed = settings_file.load(write(tmp_path, text))
    assert parsed.settings.prefetch_limit == 5


def test_an_unknown_name_is_reported(tmp_path: Path) -> None:
    parsed = settings_file.load(write(tmp_path, "memory: {pgvector: {prefetch_limt: 3}}\n"))
    assert any("prefetch_limt" in problem for problem in parsed.problems)


def test_secrets_come_from_the_homes_env_file(tmp_path: Path) -> None:
    home = write(tmp_path, 'memory: {pgvector: {dsn: "dbname=x password=${THE_PASSWORD}"}}\n')
    (home / ".env").write_text("# comment\nexport THE_PASSWORD='s3cret'\nKEY=abc\n")
    assert settings_file.load(home).settings.dsn == "dbname=x password=s3cret"
    assert settings_file.secret(home, "KEY") == "abc"
    assert settings_file.secret(home, "") is None


def test_saving_one_field_keeps_comments_and_everything_else(tmp_path: Path) -> None:
    text = "# mine\nmodel: x  # keep\nmemory:\n  provider: pgvector\n  pgvector:\n    dsn: dbname=a\n    embed_url: http://e\n"
    home = write(tmp_path, text)
    changed = settings_file.save(home, {"prefetch_limit": "9", "dsn": "dbname=a", "embed_url": "http://e"})
    assert changed == ["prefetch_limit"]
    written = (home / "config.yaml").read_text()
    assert "# mine" in written
    assert "# keep" in written
    assert yaml.safe_load(written)["memory"]["pgvector"] == {
        "dsn": "dbname=a",
        "embed_url": "http://e",
        "prefetch_limit": 9,
    }


def test_saving_what_is_in_force_writes_nothing(tmp_path: Path) -> None:
    home = write(tmp_path, "memory: {pgvector: {dsn: 'postgresql://u:pw@h/d', allowed_themes: [a, b]}}\n")
    before = (home / "config.yaml").read_bytes()
    schema = host_config.schema(settings_file.load(home).settings)
    assert "pw" not in str(schema)
    fields = {field["key"]: field["default"] for field in schema if not field.get("secret")}
    assert host_config.save(home, {**fields, "allowed_themes": "['a', 'b']"}) == []
    assert (home / "config.yaml").read_bytes() == before


def test_a_wrong_value_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    home = write(tmp_path, "memory: {}\n")
    with pytest.raises(ConfigError, match="prefetch_limit"):
        settings_file.save(home, {"prefetch_limit": "lots", "turn_min_chars": 10})
    assert (home / "config.yaml").read_text() == "memory: {}\n"


def test_an_invalid_file_is_never_overwritten(tmp_path: Path) -> None:
    home = write(tmp_path, "memory: [unclosed\n")
    with pytest.raises(ConfigError):
        settings_file.save(home, {"prefetch_limit": 9})
    assert (home / "config.yaml").read_text() == "memory: [unclosed\n"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:hunter2@h/d",
        "host=h password=hunter2 user=u",
        "host=h password='hunter2 \\' x' user=u",
        "postgresql://h/d?user=u&password=hunter2&x=1",
        "postgresql://u:p@hunter2@h/d",
        "postgresql://u:p/hunter2?x@h/d",
        "host=h password=my hunter2 user=u",
        "host=h password=my\\ hunter2",
        "host=h password=a&hunter2",
        "host=h password='never closed hunter2",
    ],
)
def test_a_password_never_survives_redaction(dsn: str) -> None:
    assert "hunter2" not in redact_dsn(dsn)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://h:1/v1", "http://h:1/v1"),
        ("https://u:hunter2@h/v1?x=1", "https://***@h/v1"),
        ("https://hunter2@h", "https://***@h"),
        ("u:hunter2@h:1", "***@h:1"),
        ("https://u:p/hunter2@h", "https://***@h"),
        ("https://u:80?hunter2@h", "https://***@h"),
        ("https://u:80#hunter2@h/v1", "https://***@h/v1"),
        ("https://h/v1?key=hunter2&api-version=2", "https://h/v1?key=***&api-version=2"),
        ("https://h/v1?hunter2", "https://h/v1?***"),
        ("https://h/v1#hunter2", "https://h/v1"),
        ("https://h/@cf/model", "https://h/@cf/model"),
        ("localhost:11434", "localhost:11434"),
    ],
)
def test_an_address_is_shown_without_what_may_be_a_credential(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_status_shows_no_password(tmp_path: Path) -> None:
    home = write(tmp_path, "memory: {pgvector: {dsn: 'postgresql://u:hunter2@h/d', prefetch_limit: 9}}\n")
    shown = host_config.status(settings_file.load(home).settings, home)
    assert "hunter2" not in str(shown)
    assert shown["prefetch_limit"] == 9


def settled(home: Path) -> Parsed:
    """The settings once the files of a home have been left alone for a moment."""
    wait_until(lambda: files.look(home / "config.yaml").age > QUIET_SECONDS)
    return settings_file.load(home)


def test_a_wrong_value_does_not_lift_a_limit(tmp_path: Path) -> None:
    good = "memory: {pgvector: {allowed_themes: [a, b], profile_scope: separate, prefetch_limit: 3}}\n"
    home = write(tmp_path, good)
    settings_file.load(home)
    write(home, "memory: {pgvector: {allowed_themes: 5, profile_scope: seperate, prefetch_limit: many}}\n")
    for _ in range(2):
        parsed = settled(home)
        settings = parsed.settings
        assert (settings.allowed_themes, settings.profile_scope, settings.prefetch_limit) == (("a", "b"), "separate", 3)
        assert all("the value in force stays" in problem for problem in parsed.problems)
    write(home, good.replace("separate", "shared"))
    assert settled(home).settings.profile_scope == "shared"


def test_each_home_of_a_process_has_its_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "own", tmp_path / "own" / "profiles" / "coder"
    for home, word in ((own, "first"), (other, "second")):
        write(home, f"memory: {{pgvector: {{dsn: 'dbname={word} password=${{THE_PASSWORD}}'}}}}\n")
        (home / ".env").write_text(f"THE_PASSWORD={word}\nKEY=key-{word}\n")
    monkeypatch.setenv("HERMES_HOME", str(own))
    # What the host does at its start: the file of the home it was started for becomes the environment of the process.
    for name, value in (("THE_PASSWORD", "first"), ("KEY", "key-first"), ("HERMES_PGVECTOR_PREFETCH_LIMIT", "9")):
        monkeypatch.setenv(name, value)
    assert settings_file.load(own).settings.dsn == "dbname=first password=first"
    assert settings_file.load(own).settings.prefetch_limit == 9
    assert settings_file.load(other).settings.dsn == "dbname=second password=second"
    assert settings_file.load(other).settings.prefetch_limit == 5
    assert settings_file.secret(other, "KEY") == "key-second"


@pytest.mark.parametrize("place", [".env", "scope", "config.yaml"])
@pytest.mark.parametrize("served", ["own", "other"])
def test_no_login_crosses_to_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, served: str
) -> None:
    own, other = tmp_path / "own", tmp_path / "own" / "profiles" / "coder"
    home, stranger = (own, other) if served == "own" else (other, own)
    for each in (own, other):
        write(each, "memory: {pgvector: {}}\n")
        (each / ".env").write_text("HERMES_PGVECTOR_DSN=dbname=strange\nKEY=strange\n" if each is stranger else "")
    if place == "config.yaml":
        write(home, "memory: {pgvector: {dsn: dbname=mine}}\n")
    elif place == ".env":
        (home / ".env").write_text("HERMES_PGVECTOR_DSN=dbname=mine\n")
    monkeypatch.setenv("HERMES_HOME", str(own))
    if stranger is own:
        monkeypatch.setenv("HERMES_PGVECTOR_DSN", "dbname=strange")
        monkeypatch.setenv("KEY", "strange")
    scope = {"HERMES_PGVECTOR_DSN": "dbname=mine"} if place == "scope" else {}
    settings_file.take_scope(home, scope, is_one_of_several=True)
    assert settings_file.load(home).settings.dsn == "dbname=mine"
    assert settings_file.secret(home, "KEY") is None


def test_where_homes_are_kept_apart_the_environment_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write(tmp_path, "memory: {pgvector: {dsn: 'dbname=x password=${THE_PASSWORD}'}}\n")
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("THE_PASSWORD", "of another profile")
    settings_file.take_scope(home, {}, is_one_of_several=True)
    assert "THE_PASSWORD" in settings_file.load(home).settings.hold


def test_a_scope_hides_nothing_from_a_home_that_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write(tmp_path, "memory: {pgvector: {}}\n")
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("HERMES_PGVECTOR_DSN", "dbname=exported")
    settings_file.take_scope(home, {"KEY": "managed"}, is_one_of_several=False)
    assert settings_file.load(home).settings.dsn == "dbname=exported"
    assert settings_file.secret(home, "KEY") == "managed"


def test_a_dsn_that_is_no_text_is_not_taken_for_none(tmp_path: Path) -> None:
    parsed = settings_file.load(write(tmp_path, "memory: {pgvector: {dsn: [one, two]}}\n"))
    assert "dsn" in parsed.settings.hold


def test_a_dsn_whose_variable_is_not_set_is_not_taken_literally(tmp_path: Path) -> None:
    parsed = settings_file.load(write(tmp_path, "memory: {pgvector: {dsn: 'dbname=x password=${NOWHERE_SET}'}}\n"))
    assert "NOWHERE_SET" in parsed.settings.hold
