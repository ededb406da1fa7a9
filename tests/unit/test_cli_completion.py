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
