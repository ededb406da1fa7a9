"""`edit`: other words for a memory, in your editor or from the command line."""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import correcting, options, reach
from hermes_memory_pgvector.errors import CareError
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.changes import Edit

NAME = "edit"
HELP = "change the words of a memory"
GROUP = "correct"
EXAMPLES = (
    ("edit m12 --execute", "open $EDITOR, and store what you save"),
    ("edit m12 --text 'Ships on Tuesday' --execute", "without an editor"),
)

DEFAULT_EDITOR = "vi"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("id", metavar="ID", help="a memory, such as m12")
    parser.add_argument("--theme", metavar="THEME", help="look into this theme only")
    parser.add_argument(
        "--text", metavar="TEXT", help="the new text (default: open $VISUAL or $EDITOR); - reads it from standard input"
    )
    correcting.add_execute(parser)


def run(args: argparse.Namespace) -> int:
    """Edit, or show the difference."""
    from hermes_memory_pgvector.care import changes, ids, see

    name = ids.parse_row(args.id)
    with reach.reading(args) as connection:
        row = see.find(connection, name, args.theme)
    text = sys.stdin.read() if args.text == "-" else args.text if args.text is not None else _edited(row.content)
    hand = correcting.hand_of(args)
    with reach.changing(args) as connection:
        found = changes.edit(connection, name, text, hand, execute=args.execute, theme=row.theme, former=row.content)
    return _tell(args, found)


def _tell(args: argparse.Namespace, found: Edit) -> int:
    code = correcting.WORK_REMAINS if found.blocked else 0
    if args.json:
        terminal.as_json(
            {
                "id": found.name, "agent_identity": found.theme, "executed": found.executed,
                "before": found.before, "after": found.after,
                "files_win": [correcting.blocked_document(found.target, each) for each in found.blocked],
            }
        )  # fmt: skip
        return code
    if found.before == found.after:
        terminal.bullet("ok", f"{found.name} stays as it is")
        return 0
    for line in difflib.unified_diff(found.before.splitlines(), found.after.splitlines(), lineterm="", n=1):
        if not line.startswith(("---", "+++", "@@")):
            terminal.wrap([terminal.one_line(line[1:])], 4, first=[f"  {line[:1]} "])
    for blocked in found.blocked:
        correcting.tell_blocked(found.target, blocked)
    if found.executed:
        terminal.bullet("ok", f"{found.name} has its new text")
    elif not found.blocked:
        again = (*options.again("--theme", args.theme), *options.again("--text", found.after))
        correcting.tell_dry_run("edit", args.id, *again)
    return code


def _edited(content: str) -> str:
    """What somebody makes of a text in their editor."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR
    with tempfile.TemporaryDirectory(prefix="hermes-pgvector-edit-") as folder:
        path = Path(folder) / "entry.md"
        path.write_text(content + "\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)  # noqa: S603 - the user's own editor
        except (OSError, ValueError):
            raise CareError(f"the editor {editor!r} cannot be started; set $EDITOR, or give --text") from None
        if done.returncode != 0:
            raise CareError(f"the editor ended with code {done.returncode}; nothing was changed")
        return path.read_text(encoding="utf-8", errors="replace")
