"""What `doctor` says of hermes' own settings and of the Python that runs it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hermes_memory_pgvector.ops.setup import checks, host_python

REQUIRED = "compression: {checkpoint_required: true}\nmemory: {provider: pgvector, pgvector: {%s}}\n"
CASES = {
    "turns are stored": ("", ""),
    "no turns": ("sync_turns: false", "sync_turns is off"),
    "no turns of chats": ("write_contexts: cron", "write_contexts leaves out primary"),
    "neither": ("sync_turns: false, write_contexts: cron", "sync_turns is off and write_contexts leaves out primary"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "reason"), CASES.values(), ids=CASES)
def test_a_checkpoint_that_is_required_and_never_given_is_told(tmp_path: Path, settings: str, reason: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(REQUIRED % settings, encoding="utf-8")
    assert reasons(tmp_path) == ([reason] if reason else [])
    config.write_text((REQUIRED % settings).replace("true", "false", 1), encoding="utf-8")
    assert reasons(tmp_path) == []


def reasons(home: Path) -> list[str]:
    """What the warnings of compression begin with."""
    until_host = itertools.takewhile(lambda each: each.name != "host", checks.examine(home))
    found = [each for each in until_host if each.name == "compression"]
    assert {each.level for each in found} <= {"warning"}
    return [each.text.partition(", so hermes")[0] for each in found]


def test_another_python_than_the_one_that_hermes_names_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else would be said of a Python that no agent runs on."""
    looked_at = host_python.HostPython(Path("/looked/at/python"), "this Python", named=Path("/named/python"))
    monkeypatch.setattr(host_python, "find", lambda _: looked_at)
    found = next(each for each in checks.examine(tmp_path) if each.name == "host")
    assert found.level == "problem"
    assert "checked /looked/at/python" in found.text
    assert found.hint == "hermes-pgvector up --hermes-python /named/python"
