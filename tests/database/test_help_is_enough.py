"""Whoever has read nothing but the examples below `--help` can add, find, correct and forget a memory."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from testing.command import PROGRAM, Commands, with_password
from testing.postgres import MODEL, Database

NAME = re.compile(r"\bm\d+\b")
TURN = re.compile(r"t\d+")


def examples(commands: Commands, name: str) -> list[list[str]]:
    """The examples that a command's help shows, as words to type."""
    lines = commands.run(name, "--help").out.partition("examples:")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith(PROGRAM.name)]


def about(memory: str, found: list[list[str]]) -> list[list[str]]:
    """Those that name a memory, with the name of ours in the place of theirs."""
    named = [words for words in found if any(NAME.fullmatch(word) for word in words)]
    return [[NAME.sub(memory, word) for word in words if not TURN.fullmatch(word)] for words in named]


def test_a_script_that_knows_only_the_examples_adds_finds_corrects_and_forgets(
    database: Database, tmp_path: Path
) -> None:
    runtime, password = with_password(database.runtime_dsn)
    commands = Commands(tmp_path, [password])
    commands.configure(dsn=runtime, embed_url="http://127.0.0.1:9/", embed_model=MODEL)
    first = commands.run("--help").out
    assert all(f"    {name} " in first for name in ("add", "recall", "edit", "forget"))

    adding = examples(commands, "add")[0]
    done = commands.run(*adding)
    assert done.code == 0, done
    memory = NAME.findall(done.out)[0]

    asking = next(words for words in examples(commands, "recall") if words[1] in adding[1])
    assert memory in commands.run(*asking).out

    correcting = next(words for words in about(memory, examples(commands, "edit")) if "--execute" in words)
    done = commands.run(*correcting)
    assert done.code == 0, done
    text = correcting[correcting.index("--text") + 1]
    theme = adding[adding.index("--theme") :][:2] if "--theme" in adding else []
    found = commands.run("recall", text, *theme)
    assert text in found.out, found
    memory = NAME.findall(found.out)[0]

    forgetting = about(memory, examples(commands, "forget"))[0]
    planned = commands.run(*(word for word in forgetting if word != "--execute"))
    assert planned.code == 0, planned
    typed = re.search(rf"{PROGRAM.name} (forget .*--execute)", planned.out)
    assert typed is not None, planned
    done = commands.run(*shlex.split(typed[1]))
    assert done.code in (0, 3), done
    assert text not in commands.run("recall", text, *theme).out.replace(f"'{text}'", "")
    assert memory not in commands.run("list", "memories", "--json").out
