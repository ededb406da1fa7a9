"""Writes the sample outputs of the pages from a run: `make samples`.

A block of output below a line `<!-- sample: NAME -->` is replaced by what the command of that name prints now, in a
terminal of 80 columns, in a home of its own. Times and scores are those of the run.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes_memory_pgvector import tour
from hermes_memory_pgvector.deadline import Deadline
from testing.command import PROGRAM, Commands
from testing.terminal import on_terminal

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "quickstart.md", ROOT / "docs" / "guides" / "backup.md")
BLOCK = re.compile(r"(?P<mark><!-- sample: (?P<name>[\w-]+) -->\n)```\n.*?\n```\n", re.DOTALL)
HOME = "/home/you/.hermes"
QUESTION = "lathe bearings and wheel bolts"


def main() -> int:
    """Run everything once and write the pages."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder:
        commands = Commands(Path(folder))
        samples: dict[str, Callable[[], str]] = {
            "up": lambda: _up(commands),
            "recall": lambda: _recall(commands),
            "backup": lambda: _shown(commands, "backup", "create", "memory.tar"),
        }
        try:
            made = {name: make() for name, make in samples.items()}
        finally:
            commands.run("up", "--stop")
        made["try"] = _shown(commands, "try")
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        path.write_text(BLOCK.sub(lambda found: f"{found['mark']}```\n{made[found['name']]}\n```\n", text), "utf-8")
        print(f"wrote the samples of {path.relative_to(ROOT)}")
    return 0


def _up(commands: Commands) -> str:
    shown = _shown(commands, "up", answers={"[Y/n]": "y\n"})
    return shown.partition("\n ✓ Ready")[0]


def _recall(commands: Commands) -> str:
    """What an operator sees of memories that two agents have written."""
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider
    from hermes_memory_pgvector.runtime.registry import close_all, engine_for

    for theme, entries in tour.MEMORIES.items():
        agent = PgvectorMemoryProvider()
        agent.initialize(
            f"{theme}-monday", hermes_home=str(commands.home), gateway_session_key=theme, platform="api_server"
        )
        for target, content in entries:
            agent.on_memory_write("add", target, content)
        agent.sync_turn(*tour.TURNS[theme], session_id=f"{theme}-monday")
    engine, _ = engine_for(commands.home)
    if not engine.flush(Deadline.after(60)):
        raise SystemExit("the samples were not stored in time")
    close_all(Deadline.after(10))
    arguments = ("recall", QUESTION, "--theme", "workshop")
    typed = f"$ hermes-pgvector recall '{QUESTION}' --theme workshop"
    return f"{typed}\n{_shown(commands, *arguments)}"


def _shown(commands: Commands, *arguments: str, answers: Mapping[str, str] | None = None) -> str:
    """What a command shows in a terminal of 80 columns, without colours, to a user who answers its questions."""
    done = on_terminal(
        [PROGRAM, *arguments],
        environment={**commands.environment, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"},
        folder=commands.folder,
        answers=answers,
    )
    if done.code:
        raise SystemExit(f"{' '.join(arguments)}: {done.shown}")
    # What a live display has drawn and taken away again.
    text = re.sub(r"[^\n]*\x1b\[K", "", done.shown)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", text).replace(str(commands.home), HOME)
    text = text.replace(str(commands.folder), str(Path(HOME).parent))
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


if __name__ == "__main__":
    os.environ.setdefault("LANG", "C.UTF-8")
    sys.exit(main())
