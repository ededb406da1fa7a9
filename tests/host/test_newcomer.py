"""A newcomer with hermes in an environment of its own: clone, `python3 start.py`, a chat, and a chat that remembers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector import carried
from testing.environments import BASE, borrowed_environment, clone, uv
from testing.hermes_home import model_section
from testing.llm_server import Say, ScriptedLLM
from testing.terminal import Session, on_terminal

QUESTION = "What is the depth of the old well behind the chapel in our village?"
ANSWER = "The old well behind the chapel is forty-two metres deep, measured by the parish in spring."
LATER = "How deep is the old well near the chapel of our village?"
IN_OWN_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
EARLY = "Who carved the wooden eagle above the door of the school?"
UNHEARD = "Which colour has the ribbon on the mayor's hat this year?"
USERS = {"root": (), "normal": IN_OWN_NAMESPACE} if os.geteuid() == 0 else {"normal": ()}


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A user, a clone, and a hermes that knows nothing of it."""

    folder: Path
    hermes: Path
    become: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        # Nothing is fetched: the build backend and all that the package needs are installed already.
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "no", "PIP_CONFIG_FILE": os.devnull}
        return {
            "PATH": f"{self.hermes}:{os.defpath}", "HOME": str(self.folder / "user"), "LANG": "C.UTF-8",
            "TERM": "xterm", "NO_PROXY": "127.0.0.1", **offline,
        }  # fmt: skip

    @property
    def site(self) -> Path:
        """Where hermes' environment keeps what is installed."""
        return next(self.hermes.parent.glob("lib/*/site-packages"))

    @property
    def config(self) -> Path:
        return self.folder / "user" / ".hermes" / "config.yaml"

    @property
    def provider(self) -> str:
        memory = yaml.safe_load(self.config.read_text(encoding="utf-8")).get("memory") or {}
        return str(memory.get("provider") or "")

    def start(self, *arguments: str, has_hermes: bool = True) -> Session:
        """`python3 start.py …` on a terminal."""
        command: list[str | Path] = [*self.become, BASE, self.folder / "clone" / "start.py", *arguments]
        environment = self.environment if has_hermes else {**self.environment, "PATH": os.defpath}
        return on_terminal(command, environment=environment, folder=self.folder)

    def ask(self, question: str) -> str:
        """One chat."""
        done = self.run("-z", question)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def hermes_pgvector(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One of our commands, from hermes."""
        return self.run("pgvector", *words)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`hermes …`."""
        return subprocess.run(
            [*self.become, self.hermes / "hermes", *words], env=self.environment, cwd=self.folder,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture(params=USERS)
def newcomer(request: pytest.FixtureRequest, tmp_path: Path, llm: ScriptedLLM) -> Iterator[Newcomer]:
    """Everything is there but the memory."""
    hermes = borrowed_environment(tmp_path / "hermes-venv", has_hermes=True)
    borrowed_environment(clone(tmp_path / "clone") / ".venv", has_hermes=False)
    made = Newcomer(tmp_path, hermes, USERS[request.param])
    made.config.parent.mkdir(parents=True)
    made.config.write_text(yaml.safe_dump({"model": model_section(llm)}), encoding="utf-8")
    yield made
    made.hermes_pgvector("up", "--stop")
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_from_a_clone_to_an_agent_that_remembers_whatever_becomes_of_its_environment(
    newcomer: Newcomer, llm: ScriptedLLM
) -> None:
    llm.when(QUESTION, Say(ANSWER))
    alone = newcomer.start(has_hermes=False)
    assert alone.code == 0, alone.shown
    assert "hermes-agent is not installed; recall works from the command line" in alone.shown
    assert "Talk to your agent" not in alone.shown
    assert newcomer.provider == "", "there is no hermes that could import it"

    before = sorted(path.name for path in newcomer.site.iterdir())
    agreed = newcomer.start()
    assert agreed.code == 0, agreed.shown
    assert "Talk to your agent" in agreed.shown
    assert newcomer.provider == "pgvector"
    assert "/n]" not in agreed.shown, "nothing is asked"
    assert newcomer.ask(QUESTION) == ANSWER
    after = [path.name for path in newcomer.site.iterdir() if path.name != "__pycache__"]
    assert sorted(after) == before, "nothing is installed into hermes' own environment"

    shutil.rmtree(newcomer.hermes.parent)
    shutil.rmtree(newcomer.folder / "clone")
    borrowed_environment(newcomer.hermes.parent, has_hermes=True)
    newcomer.ask(LATER)
    assert ANSWER in llm.about(LATER)[-1].recalled


def made_by_pip(folder: Path) -> None:
    subprocess.run([BASE, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", HOST], check=True)


def made_by_uv(folder: Path) -> None:
    subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", BASE, folder], check=True)
    subprocess.run([uv(), "pip", "install", "--quiet", "--python", folder / "bin" / "python", HOST], check=True)


HOST = f"hermes-agent=={metadata.version('hermes-agent')}"


@pytest.mark.large
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("make", [made_by_pip, made_by_uv])
def test_an_environment_made_anew_has_the_memory_and_what_was_said_without_it_is_offered(
    newcomer: Newcomer, llm: ScriptedLLM, make: Callable[[Path], None]
) -> None:
    """The environment is fetched from the package index, and holds hermes-agent alone: the folder declares nothing."""
    environment, home = newcomer.hermes.parent, newcomer.config.parent

    def rebuild() -> None:
        shutil.rmtree(environment)
        make(environment)

    llm.when(QUESTION, Say(ANSWER))
    rebuild()
    newcomer.ask(EARLY)
    agreed = newcomer.start("--yes")
    assert agreed.code == 0, agreed.shown
    assert newcomer.ask(QUESTION) == ANSWER

    rebuild()
    newcomer.ask(LATER)
    assert ANSWER in llm.about(LATER)[-1].recalled

    (libraries,) = carried.folders(home)
    libraries.rename(home / "elsewhere")
    newcomer.ask(UNHEARD)
    assert not llm.about(UNHEARD)[-1].recalled
    (home / "elsewhere").rename(libraries)
    rebuild()
    newcomer.ask(LATER)
    assert ANSWER in llm.about(LATER)[-1].recalled
    offered = newcomer.hermes_pgvector("import", "state", "--json")
    told = json.loads(offered.stdout)
    # The question that nobody heard and its answer; the chat of before `up` came in with it.
    assert (told["executed"], told["counts"], told["samples"][0]["known"]) == (False, {"rows": 2}, 8), told
