"""What hermes loads is tiny, harmless when executed in any order, and complete before requests arrive."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector.ops.setup import plugin_folder
from testing.cases import some_of
from testing.command import portable
from testing.environments import borrowed_environment
from testing.hermes_home import HermesHome, model_section
from testing.llm_server import ScriptedLLM

DOOR = Path(__file__).parents[2] / "src" / "hermes_memory_pgvector" / "hermes_plugin"
SOURCES = sorted(DOOR.rglob("*.py"))

WARM_THEN_LOAD_AT_ONCE = """
import importlib.util, json, os, pathlib, threading
from plugins.memory import load_memory_provider
handler = pathlib.Path(os.environ["HERMES_HOME"]) / "hooks" / "pgvector" / "handler.py"
spec = importlib.util.spec_from_file_location("hermes_hook_pgvector", handler)
spec.loader.exec_module(importlib.util.module_from_spec(spec))
start, found = threading.Barrier(8), []
def load():
    start.wait()
    provider = load_memory_provider("pgvector")
    found.append(provider and provider.name)
threads = [threading.Thread(target=load) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(found))
"""

WITHOUT_A_LIBRARY = """
import json, logging, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "psycopg":
            raise ModuleNotFoundError("absent", name=name)
sys.meta_path.insert(0, Absent())
lines = []
class Keep(logging.Handler):
    def emit(self, record): lines.append([record.levelname, record.getMessage()])
logging.getLogger().addHandler(Keep())
from plugins.memory import discover_memory_providers, load_memory_provider
listed = [available for name, _, available in discover_memory_providers() if name == "pgvector"]
provider = load_memory_provider("pgvector")
print(json.dumps([listed, provider.is_available(), provider.unavailable_reason(), provider.get_tool_schemas(), lines]))
"""

SETUPS = {words: tuple(words.split()) for words in ("memory setup pgvector", "pgvector up --yes")}

MEMBERS = """
import inspect, json
from agent.memory_provider import MemoryProvider
from plugins.memory import load_memory_provider
provider = load_memory_provider("pgvector")
wanted = {name: str(inspect.signature(getattr(MemoryProvider, name))) for name in dir(MemoryProvider)
          if not name.startswith("_") and callable(getattr(MemoryProvider, name))}
own = {name: name in vars(type(provider)) for name in wanted}
print(json.dumps([isinstance(provider, MemoryProvider), own]))
"""

ANSWERED_BY_THE_BASE_CLASS = {"queue_prefetch", "on_turn_start"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(DOOR)))
def test_a_plugin_file_is_small_stateless_and_imports_inside_functions(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 30
    for statement in ast.parse(text).body:
        match statement:
            case ast.ImportFrom(module="typing" | "importlib") | ast.FunctionDef():
                pass
            case ast.Assign(targets=[ast.Name(id="router")]) if source.name == "plugin_api.py":
                # The dashboard imports it once, at its start, and looks for the router in it.
                pass
            case ast.Expr(value=ast.Constant() | ast.Call(args=[])):
                pass
            case other:
                pytest.fail(f"{source.name}:{other.lineno} is neither a function nor a docstring")


def test_the_words_hermes_looks_for_stand_near_the_top() -> None:
    assert "register_memory_provider" in (DOOR / "__init__.py").read_text(encoding="utf-8")[:200]


def test_eight_loads_at_once_all_get_a_provider(hermes_home: HermesHome) -> None:
    assert hermes_home.python(WARM_THEN_LOAD_AT_ONCE) == ["pgvector"] * 8


def test_without_a_library_hermes_goes_on_and_knows_what_to_run(hermes_home: HermesHome) -> None:
    listed, is_available, reason, tools, lines = hermes_home.python(WITHOUT_A_LIBRARY)
    assert (listed, is_available, tools) == ([False], False, [])
    assert reason == "the library psycopg is missing; run: hermes pgvector up"
    assert ["WARNING", f"The pgvector memory is off: {reason}"] in lines


@pytest.mark.parametrize("words", some_of(SETUPS, "memory setup pgvector"))
def test_the_folder_alone_fetches_what_it_needs(tmp_path: Path, llm: ScriptedLLM, words: tuple[str, ...]) -> None:
    """As from a catalog: hermes, this folder, and nothing of ours installed anywhere."""
    hermes = borrowed_environment(tmp_path / "hermes-venv", has_hermes=True)
    home = tmp_path / "user" / ".hermes"
    plugin_folder.install(home)
    (home / "config.yaml").write_text(
        yaml.safe_dump({"model": model_section(llm), "memory": {"provider": "pgvector"}}), encoding="utf-8"
    )
    index = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    environment = {
        **portable(), **index, "PIP_CACHE_DIR": str(Path.home() / ".cache" / "pip"),
        "PATH": f"{hermes}:{os.defpath}", "HOME": str(tmp_path / "user"), "LANG": "C.UTF-8",
    }  # fmt: skip

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [hermes / "hermes", *words], env=environment, input="\n" * 60,
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip

    chat = run("-z", "Is anybody there?")
    assert chat.returncode == 0, chat
    told = run("pgvector", "status")
    assert told.returncode == 1, told
    assert "libraries are missing; run: hermes pgvector up" in told.stderr
    try:
        done = run(*words)
        assert done.returncode == 0, done
        assert "Ready. Talk to your agent" in done.stdout
        assert run("pgvector", "doctor").returncode == 0
    finally:
        run("pgvector", "up", "--stop")


def test_the_provider_is_a_real_subclass_that_answers_every_hook_itself(hermes_home: HermesHome) -> None:
    is_subclass, own = hermes_home.python(MEMBERS)
    assert is_subclass
    assert {name for name, is_own in own.items() if not is_own} <= ANSWERED_BY_THE_BASE_CLASS


def test_hermes_pgvector_is_our_command_tree(hermes_home: HermesHome) -> None:
    helped = hermes_home.run("pgvector", "--help")
    assert helped.code == 0, helped
    for command in ("up", "status", "doctor", "recall", "list", "show", "forget"):
        assert command in helped.out


def test_hermes_pgvector_status_reports_the_database_without_its_password(hermes_home: HermesHome) -> None:
    status = hermes_home.run("pgvector", "status")
    assert status.code == 0, status
    assert hermes_home.password not in status.out + status.err


def test_an_unknown_subcommand_is_a_usage_error(hermes_home: HermesHome) -> None:
    assert hermes_home.run("pgvector", "nonsense").code == 2
