"""`config`: every value with its layer, changes checked, everything else in the file left alone."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.ops.setup import checks
from testing.command import Commands
from testing.embed_server import EmbedServer

FILE = """\
# my own words
model: {default: x}
memory:
  provider: pgvector   # chosen
  pgvector:
    prefetch_limit: 3
    allowed_themes: [a, b]
plugins:
  pgvector:
    journal_max_mb: 5000
"""
PASSWORD = "s3cret-Word"


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    made = Commands(tmp_path, [PASSWORD])
    made.home.mkdir()
    (made.home / "config.yaml").write_text(FILE, encoding="utf-8")
    return made


def test_show_says_where_each_value_comes_from(commands: Commands) -> None:
    done = commands.call("config", "show", "--json", variables={"HERMES_PGVECTOR_TURN_MIN_CHARS": "12"})
    assert done.code == 0
    settings = done.json["settings"]
    assert settings["prefetch_limit"] == {"value": 3, "source": "memory.pgvector"}
    assert settings["journal_max_mb"] == {"value": 5000, "source": "plugins.pgvector"}
    assert settings["turn_min_chars"] == {"value": 12, "source": "environment"}
    assert settings["sync_turns"] == {"value": True, "source": "default"}


def test_show_can_leave_the_defaults_out(commands: Commands) -> None:
    done = commands.call("config", "show", "--changed")
    found = {name for line in done.out.splitlines() for name in line.split()[:3] if "_" in name and "/" not in name}
    assert found == {"journal_max_mb", "prefetch_limit", "allowed_themes"}
    heads = [line.split()[0] for line in commands.call("config", "show").out.splitlines() if line[2:3].strip()]
    assert len(heads) == len(set(heads)), "grouped, each group named once"
    assert {"database", "recall", "stored", "themes"} <= set(heads)


def test_show_leaves_out_what_nobody_needs_unless_it_is_set(commands: Commands) -> None:
    assert "write_queue_maxsize" not in commands.call("config", "show").out
    given = {"HERMES_PGVECTOR_WRITE_QUEUE_MAXSIZE": "9"}
    assert "write_queue_maxsize" in commands.call("config", "show", variables=given).out


def test_show_names_every_wrong_value(commands: Commands) -> None:
    wrong = {"HERMES_PGVECTOR_TURN_MIN_CHARS": "few", "HERMES_PGVECTOR_JOURNAL_MAX_MB": "0"}
    done = commands.call("config", "show", variables=wrong)
    assert done.code == 1
    assert "turn_min_chars" in done.out
    assert "journal_max_mb" in done.out


def test_set_changes_one_line_and_keeps_comments(commands: Commands) -> None:
    assert commands.call("config", "set", "prefetch_limit", "7").code == 0
    text = (commands.home / "config.yaml").read_text(encoding="utf-8")
    assert text == FILE.replace("prefetch_limit: 3", "prefetch_limit: 7")
    assert commands.call("config", "get", "prefetch_limit").out == "7\n"


def test_set_takes_lists_as_people_write_them(commands: Commands) -> None:
    commands.call("config", "set", "allowed_themes", "Red, blue")
    assert commands.config["memory"]["pgvector"]["allowed_themes"] == ["red", "blue"]


@pytest.mark.parametrize(
    ("name", "value"), [("prefetch_limit", "many"), ("embed_protocol", "telepathy"), ("dsn", "a b")]
)
def test_set_refuses_a_wrong_value_and_changes_nothing(commands: Commands, name: str, value: str) -> None:
    done = commands.call("config", "set", name, value)
    assert done.code in (1, 2)
    assert "nothing was changed" in done.err
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == FILE


def test_unset_returns_to_the_layer_below(commands: Commands) -> None:
    commands.call("config", "set", "journal_max_mb", "7000")
    assert commands.call("config", "get", "journal_max_mb", "--json").json["source"] == "memory.pgvector"
    done = commands.call("config", "unset", "journal_max_mb", "--json")
    assert done.json == {"name": "journal_max_mb", "changed": True, "value": 5000, "source": "plugins.pgvector"}
    assert commands.call("config", "unset", "prefetch_limit", "--json").json["value"] == 5
    assert commands.call("config", "unset", "prefetch_limit", "--json").json["changed"] is False


def test_set_says_when_the_environment_wins(commands: Commands) -> None:
    done = commands.call("config", "set", "prefetch_limit", "9", variables={"HERMES_PGVECTOR_PREFETCH_LIMIT": "4"})
    assert done.code == 0
    assert "HERMES_PGVECTOR_PREFETCH_LIMIT" in done.out
    assert commands.config["memory"]["pgvector"]["prefetch_limit"] == 9


@pytest.mark.slow
def test_a_password_goes_to_the_env_file_and_is_never_shown(commands: Commands) -> None:
    env = commands.home / ".env"
    env.write_text("# keys\nOTHER='kept as it is'\nexport MORE=1", encoding="utf-8")
    done = commands.run("config", "set", "dsn", f"postgresql://me:{PASSWORD}@db.example/mine", "--force")
    assert done.code == 0
    assert PASSWORD not in (commands.home / "config.yaml").read_text(encoding="utf-8")
    lines = env.read_text(encoding="utf-8").splitlines()
    assert lines == ["# keys", "OTHER='kept as it is'", "export MORE=1", f"HERMES_PGVECTOR_PASSWORD={PASSWORD}"]
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    shown = commands.run("config", "get", "dsn").out
    assert "***" in shown
    assert "host=db.example" in shown
    assert "***" in commands.run("config", "show").out


def test_the_same_connection_string_again_changes_nothing(commands: Commands) -> None:
    dsn = f"postgresql://me:{PASSWORD}@db.example/mine"
    commands.call("config", "set", "dsn", dsn, "--force")
    before = [(commands.home / name).read_bytes() for name in ("config.yaml", ".env")]
    commands.call("config", "set", "dsn", dsn, "--force")
    assert [(commands.home / name).read_bytes() for name in ("config.yaml", ".env")] == before


def test_broken_yaml_is_named_and_left_alone(commands: Commands) -> None:
    (commands.home / "config.yaml").write_text("memory: [", encoding="utf-8")
    assert "not valid YAML" in commands.call("config", "show").out
    done = commands.call("config", "set", "prefetch_limit", "7")
    assert done.code == 1
    assert "not valid YAML" in done.err
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == "memory: ["


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("127.0.0.1:11434", "embed_url must begin with http:// or https://; nothing was changed"),
        ("ftp://x", "embed_url must begin with http:// or https://; nothing was changed"),
        ("http://", "embed_url names no host; nothing was changed"),
    ],
)
def test_an_endpoint_that_cannot_work_is_refused(commands: Commands, value: str, sentence: str) -> None:
    done = commands.call("config", "set", "embed_url", value)
    assert done.code == 1
    assert sentence in done.err
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == FILE


def test_a_protocol_without_an_endpoint_is_refused_until_there_is_one(commands: Commands) -> None:
    done = commands.call("config", "set", "embed_protocol", "openai")
    assert done.code == 1
    assert "embed_url is empty" in done.err
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == FILE
    done = commands.call("config", "set", "embed_url", "http://127.0.0.1:9/v1", "--force")
    assert done.code == 0
    assert "no connection to http://127.0.0.1:9" in " ".join(done.out.split())
    assert commands.call("config", "set", "embed_protocol", "openai").code == 0


def test_a_database_that_does_not_answer_is_refused_unless_forced(commands: Commands) -> None:
    dsn = f"postgresql://me:{PASSWORD}@127.0.0.1:9/mine"
    done = commands.call("config", "set", "dsn", dsn)
    assert done.code == 2
    assert "mine on 127.0.0.1:9 as me: no server listens where the connection string leads" in done.err
    assert "Nothing was changed; to write it all the same, add --force" in done.err
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == FILE
    assert not (commands.home / ".env").exists()
    assert commands.call("config", "set", "dsn", dsn, "--force").code == 0


def test_the_value_in_force_is_shown_with_its_source(commands: Commands) -> None:
    def value(name: str) -> tuple[object, str]:
        shown = commands.call("config", "get", name, "--json").json
        assert commands.call("config", "get", name).out.strip() == str(shown["value"])
        return shown["value"], shown["source"]

    assert commands.call("config", "get", "dsn").out.strip() == "(the embedded server)"
    assert value("embed_model") == ("nomic-embed-text", "default")
    commands.call("config", "set", "min_similarity", "0.3")
    assert value("min_similarity") == (0.3, "memory.pgvector")


def test_a_mistyped_setting_is_answered_with_what_looks_like_it(commands: Commands) -> None:
    for action in (("get", "prefetch_limits"), ("set", "prefetchlimit", "3"), ("unset", "prefech_limit")):
        done = commands.call("config", *action)
        assert done.code == 2
        assert "did you mean prefetch_limit?" in done.err


def test_a_connection_string_goes_with_its_password(commands: Commands) -> None:
    commands.home.mkdir(parents=True, exist_ok=True)
    (commands.home / ".env").write_text("OTHER=kept\n", encoding="utf-8")
    for back in (("unset", "dsn"), ("set", "dsn", "")):
        commands.call("config", "set", "dsn", "postgresql://ada:s3cret@127.0.0.1:1/x", "--force")
        assert "s3cret" in (commands.home / ".env").read_text(encoding="utf-8")
        done = commands.call("config", *back, "--json")
        assert done.json == {"name": "dsn", "changed": True, "value": "", "source": "default"}
        assert (commands.home / ".env").read_text(encoding="utf-8") == "OTHER=kept\n"
    assert commands.call("config", "unset", "dsn", "--json").json["changed"] is False


def test_a_connection_string_in_the_environment_file_goes_too(commands: Commands) -> None:
    commands.home.mkdir(parents=True, exist_ok=True)
    (commands.home / ".env").write_text("HERMES_PGVECTOR_DSN=postgresql://ada:s3cret@127.0.0.1:1/x\n", encoding="utf-8")
    assert commands.call("config", "get", "dsn", "--json").json["source"] == "environment"
    commands.call("config", "unset", "dsn")
    assert commands.call("config", "get", "dsn", "--json").json["source"] == "default"
    assert (commands.home / ".env").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("password", ["a%23b", "a%27b", "a%22b", "a%24b", "a%5Cb", "a%20b"])
def test_a_password_that_env_files_cannot_hold_is_still_nobody_elses_to_read(commands: Commands, password: str) -> None:
    config = commands.home / "config.yaml"
    config.chmod(0o644)
    commands.call("config", "set", "dsn", "postgresql://me:${MY_OWN}@db.example/mine", "--force")
    assert stat.S_IMODE(config.stat().st_mode) == 0o644, "a reference is no secret"
    done = commands.call("config", "set", "dsn", f"postgresql://me:{password}@db.example/mine", "--force")
    assert done.code == 0, done.everything
    assert password in config.read_text(encoding="utf-8")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_an_embedder_that_does_not_answer_is_refused_unless_forced(commands: Commands) -> None:
    done = commands.call("config", "set", "embed_url", "http://127.0.0.1:9/")
    assert done.code == 2
    said = " ".join(done.err.split())
    assert "no connection to http://127.0.0.1:9" in said
    assert "recall would find words alone" in said
    assert (commands.home / "config.yaml").read_text(encoding="utf-8") == FILE
    assert commands.call("config", "set", "embed_url", "http://127.0.0.1:9/", "--force").code == 0


def test_an_embedder_is_asked_before_it_is_written(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    ask = checks.of_embedder

    def looks(home: Path, settings: Settings) -> Iterator[checks.Finding]:
        found.append((home / "config.yaml").read_text(encoding="utf-8"))
        return ask(home, settings)

    monkeypatch.setattr(checks, "of_embedder", looks)
    with EmbedServer(dim=768) as server:
        done = commands.call("config", "set", "embed_url", server.url)
    assert done.code == 0
    assert "embedder: nomic-embed-text (auto), 768 dimensions" in done.out
    assert found == [FILE]


def test_a_variable_that_says_the_default_overrides_too(commands: Commands) -> None:
    variables = {"HERMES_PGVECTOR_PREFETCH_TRUST": "trusted"}
    done = commands.call("config", "set", "prefetch_trust", "all", variables=variables)
    assert "trusted (environment)" in done.out
    assert "overrides config.yaml" in done.out
    assert commands.call("config", "unset", "prefetch_trust", "--json", variables=variables).json["changed"] is True
    assert "prefetch_trust" not in (commands.home / "config.yaml").read_text(encoding="utf-8")


def test_unset_takes_a_wrong_value_away(commands: Commands) -> None:
    file = commands.home / "config.yaml"
    file.write_text(FILE.replace("prefetch_limit: 3", "prefetch_trust: strict"), encoding="utf-8")
    assert commands.call("config", "unset", "prefetch_trust", "--json").json["changed"] is True
    assert "prefetch_trust" not in file.read_text(encoding="utf-8")
