"""What `hermes memory setup pgvector` runs: it asks, writes what differs, and does what `up` does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.server.server import EmbeddedPostgres
from testing.command import Commands, Finished, with_password
from testing.embed_server import EmbedServer
from testing.postgres import DIM, Database
from testing.stored import Stored

WIZARD = (
    "import pathlib, sys; from hermes_memory_pgvector.ops.setup import wizard\nwizard.run(pathlib.Path(sys.argv[1]))"
)


def ask(commands: Commands, answers: str) -> Finished:
    done = subprocess.run(
        [sys.executable, "-c", WIZARD, str(commands.home)], input=answers, env=commands.environment, text=True,
        capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    finished = Finished(done.returncode, done.stdout, done.stderr)
    assert finished.code == 0, finished
    for secret in commands.secrets:
        assert secret not in finished.everything
    return finished


@pytest.fixture
def commands(database: Database, tmp_path: Path) -> Commands:
    """A home whose owner has chosen a few things."""
    runtime, password = with_password(database.runtime_dsn)
    made = Commands(tmp_path, [password])
    made.configure(
        dsn=runtime, embed_url="http://127.0.0.1:9/v1", embed_model="some-model", embed_dim=DIM, turn_min_chars=3
    )
    return made


@pytest.mark.parametrize("answers", ["\n" * 20, ""])
def test_enter_and_silence_change_nothing(commands: Commands, answers: str) -> None:
    before = (commands.home / "config.yaml").read_bytes()
    done = ask(commands, answers)
    assert "some-model" in done.out
    assert (commands.home / "config.yaml").read_bytes() == before
    assert not (commands.home / ".env").exists()


def test_an_answer_is_written_and_a_wrong_one_is_not(commands: Commands) -> None:
    before = commands.config["memory"]["pgvector"]
    done = ask(commands, "not a dsn\nhttp://127.0.0.1:9/other\n\nMY_KEY\n")
    assert "it stays as it was" in done.out
    after = commands.config["memory"]["pgvector"]
    assert after == {**before, "embed_url": "http://127.0.0.1:9/other", "embed_api_key_env": "MY_KEY"}


def test_the_word_none_means_no_endpoint(commands: Commands) -> None:
    commands.configure(**{**commands.config["memory"]["pgvector"], "embed_dim": None})
    done = ask(commands, "\nnone\n")
    assert commands.config["memory"]["pgvector"]["embed_url"] == ""
    assert "Model the embedding endpoint should use" not in done.out, "it means nothing without an endpoint"


def test_a_login_in_the_address_is_not_shown(commands: Commands) -> None:
    commands.configure(**{**commands.config["memory"]["pgvector"], "embed_url": "http://me:hunter2@127.0.0.1:9"})
    commands.secrets.append("hunter2")
    before = (commands.home / "config.yaml").read_bytes()
    assert "[http://***@127.0.0.1:9]" in ask(commands, "\nhttp://***@127.0.0.1:9\n\n\n").out
    assert (commands.home / "config.yaml").read_bytes() == before


def test_a_new_database_is_set_up(empty_database: Database, tmp_path: Path) -> None:
    owner, password = with_password(empty_database.owner_dsn)
    commands = Commands(tmp_path, [password])
    commands.home.mkdir()
    with EmbedServer(dim=DIM) as server:
        ask(commands, f"{owner}\n{server.url}\nsome-model\n\n")
    assert Stored(empty_database.owner_dsn).rows("SELECT name, dim FROM embedding_models") == [("some-model", DIM)]
    assert commands.config["memory"]["provider"] == "pgvector"
    assert password not in (commands.home / "config.yaml").read_text(encoding="utf-8")


def test_a_database_that_does_not_answer_is_not_written(commands: Commands) -> None:
    before = commands.config
    done = ask(commands, "postgresql://me@127.0.0.1:9/x\n\n\n\n\n")
    assert "no server listens where the connection string leads" in done.out
    assert "it stays as it was" in done.out
    assert commands.config == before


def test_ctrl_c_ends_it_with_a_sentence(commands: Commands) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WIZARD, str(commands.home)], env=commands.environment, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    while "pgvector memory" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted; what you answered before is kept\n")


def test_settings_that_cannot_be_changed_end_it_with_a_sentence(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    commands.home.mkdir()
    (commands.home / "config.yaml").write_text("memory: [", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WIZARD, str(commands.home)], env=commands.environment, text=True, input="\n\n",
        capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "not valid YAML" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_way_back_to_the_embedded_server_is_offered(commands: Commands) -> None:
    password = commands.home / ".env"
    password.write_text("HERMES_PGVECTOR_PASSWORD=kept-for-the-former-server\nOTHER=stays\n", encoding="utf-8")
    try:
        ask(commands, "embedded\nnone\n")
    finally:
        EmbeddedPostgres(commands.home / "pgvector").stop(Deadline.after(60), mode="immediate")
    assert "dsn" not in commands.config["memory"]["pgvector"]
    assert password.read_text(encoding="utf-8") == "OTHER=stays\n"
