"""Completion: a shell offers the names of all commands."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from hermes_memory_pgvector import command_line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_offers_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert {command.name for command in command_line.EVERY} <= set(script.replace("'", " ").split())
    if shutil.which(shell):
        subprocess.run([shell, "-n", "-c", script], check=True)


def test_bash_completes_what_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("complete ")
    offer = f"{script.replace('complete', 'compgen', 1).replace('hermes-pgvector', '-- rec')}"
    done = subprocess.run(["bash", "-c", offer], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["recall"]
