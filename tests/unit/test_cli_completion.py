"""Completion: what the scripts offer is what the command tree has."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from hermes_memory_pgvector import cli
from hermes_memory_pgvector.cli import completion, tree
from hermes_memory_pgvector.config.settings import DECLARATIONS

ASK = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_hermes_pgvector
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The script for each shell."""
    parser = tree.Parser(prog="hermes-pgvector")
    cli.configure(parser)
    folder = tmp_path_factory.mktemp("completion")
    found = list(completion.places(parser))
    made = {}
    for shell, write in completion.SCRIPTS.items():
        made[shell] = folder / shell
        made[shell].write_text(write(found), encoding="utf-8")
    return made


def offered(script: Path, *words: str) -> set[str]:
    """What a real bash offers after these words; the last one is being typed."""
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", script, "hermes-pgvector", *words], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_completes_commands_actions_options_and_values(scripts: dict[str, Path]) -> None:
    bash = scripts["bash"]
    assert {command.NAME for command in cli.COMMANDS} <= offered(bash, "")
    assert "recall" in offered(bash, "rec")
    assert {"show", "get", "set", "unset", "accept"} <= offered(bash, "config", "")
    assert set(DECLARATIONS) <= offered(bash, "config", "set", "")
    assert offered(bash, "recall", "x", "--kind", "") == {"memories", "turns", "both"}
    assert offered(bash, "recall", "--color", "al") == {"always"}
    assert offered(bash, "journal", "dead", "re") == {"retry"}
    assert offered(bash, "recall", "x", "--theme", "") == set()
    assert "--limit" in offered(bash, "recall", "x", "--l")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_offer_the_same_words(scripts: dict[str, Path], shell: str) -> None:
    text = scripts[shell].read_text(encoding="utf-8")
    for word in (*(command.NAME for command in cli.COMMANDS), *DECLARATIONS, "accept-database", "memories"):
        assert word in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", scripts[shell]], check=True)


def test_fish_completes_for_real_where_there_is_one(scripts: dict[str, Path]) -> None:
    if shutil.which("fish"):
        line = f"source {scripts['fish']}; complete -C 'hermes-pgvector config set prefetch_l'"
        done = subprocess.run(["fish", "-c", line], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("prefetch_limit")


def test_the_script_is_printed(capsys: pytest.CaptureFixture[str], scripts: dict[str, Path]) -> None:
    for shell, script in scripts.items():
        assert cli.main(["completion", shell]) == 0
        out = capsys.readouterr().out
        assert json.dumps(out.strip()) == json.dumps(script.read_text(encoding="utf-8").strip())
