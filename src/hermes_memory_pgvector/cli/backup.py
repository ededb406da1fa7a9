"""`backup`: the embedded database and the journals of all homes as one file."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.home import root_of
from hermes_memory_pgvector.setup import backup, terminal

NAME = "backup"
HELP = "write the embedded database and the journals of all homes to one file"
GROUP = "move"
EXAMPLES = (
    ("backup", "a file with today's date in this folder; hermes may go on running"),
    ("backup --output memory.tar --verify", "and restore it into a temporary server to see that it can be"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="where to (default: hermes-memory-DATE.tar here)")
    parser.add_argument(
        "--verify", action="store_true", help="restore it into a temporary server and compare every theme"
    )


def run(args: argparse.Namespace) -> int:
    """Make the backup; exit code 1 when what was restored is not what was backed up."""
    home = options.home_of(args)
    today = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    target = (args.output or Path(f"hermes-memory-{today}.tar")).expanduser().absolute()
    started = time.perf_counter()
    with terminal.progress("backing up", quiet=args.json) as bar:
        manifest = backup.make(home, target, bar.phase)
        differing = backup.verify(target, bar.phase) if args.verify else []
    seconds = time.perf_counter() - started
    themes = manifest.themes
    memories, turns = (sum(each[place] for each in themes.values()) for place in (0, 1))
    size = target.stat().st_size
    if args.json:
        terminal.as_json(
            {
                "file": str(target),
                "bytes": size,
                "seconds": seconds,
                "verified": args.verify and not differing,
                "differing": differing,
                "homes": [each.home for each in manifest.homes],
                "left_out": dict(manifest.left_out),
                "themes": {theme: {"memories": one, "turns": two} for theme, (one, two) in sorted(themes.items())},
            }
        )
        return 1 if differing else 0
    terminal.bullet(
        "ok",
        f"{target}: {terminal.count(memories, 'memory', 'memories')} and {terminal.count(turns, 'turn')} of"
        f" {terminal.count(len(themes), 'theme')}, journals of {terminal.count(len(manifest.homes), 'home')};"
        f" {terminal.size(size)} in {terminal.seconds(seconds)}",
    )
    for each, where in manifest.left_out.items():
        terminal.bullet(
            "warning", f"not in it: {each}, whose memory is elsewhere ({where})", backup.outside(root_of(home) / each)
        )
    if differing:
        for each in differing[:10]:
            terminal.bullet("problem", f"restored, this differs: {each}")
        return 1
    if args.verify:
        terminal.bullet("ok", "restored into a temporary server: every theme has the same rows")
    terminal.bullet("note", "it holds all memories and the key of private themes: keep it like a password")
    terminal.bullet("note", "to put it back", f"hermes-pgvector restore-backup {target}")
    return 0
