"""Writes the generated files: the settings and commands pages. `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from hermes_memory_pgvector import command_line
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS, GROUPS, plain
from hermes_memory_pgvector.terminal import program as tree

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
RARE = """
These are read so that existing configurations keep working; `config show` lists them only when they are set, or with
`--all`."""
NOTE = "<!-- Written by docs/generate.py; edit the source instead. -->\n\n"


def settings_page() -> str:
    """Every setting with its default; those that no operator needs in a table of their own."""
    head = ["\n| setting | default | what it does | takes |", "|---|---|---|---|"]
    lines = [
        "# Settings\n",
        "Set them under `memory.pgvector` in `$HERMES_HOME/config.yaml`, or as `HERMES_PGVECTOR_<NAME>` in the",
        "environment, which takes precedence. `hermes-pgvector config show` says where each value comes from.",
    ]
    for group, title in GROUPS.items():
        rows = [_setting_row(name) for name, declaration in DECLARATIONS.items() if declaration.group == group]
        lines += [f"\n## {title}", *([RARE] if group == "compatibility" else []), *head, *rows]
    return NOTE + "\n".join(lines) + "\n"


def _setting_row(name: str) -> str:
    declaration, default = DECLARATIONS[name], plain(DEFAULTS[name])
    if isinstance(default, bool):
        shown = str(default).lower()
    elif isinstance(default, list):
        shown = ", ".join(default) or "(empty)"
    else:
        shown = "(empty)" if default in ("", None) else str(default)
    return f"| `{name}` | `{shown}` | {declaration.help} | {declaration.expects} |"


def commands_page() -> str:
    """The help of every command."""
    parser = command_line.program()
    listed = tree.all_commands(parser.prog, command_line.EVERY, 100)
    known = tree.commands_of(parser)
    aliases = sorted(known.parsers.keys() - known.listed.keys()) if known else []
    sections = [
        "# Commands\n",
        "Inside the host, the same commands are `hermes pgvector …`.\n",
        _help(parser),
        f"`help --all` lists all of them:\n\n```\n{listed}\n```\n",
        f"Names that work and that no help lists: {', '.join(f'`{name}`' for name in aliases)}.\n",
    ]
    return NOTE + "\n".join([*sections, *_sections(parser, ())])


def _sections(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[str]:
    """The commands below a parser, each with its heading and its help, and below it those of its actions."""
    commands = tree.commands_of(parser)
    for name, command in commands.listed.items() if commands else ():
        if command.prog.endswith(f" {name}"):
            words = (*path, name)
            yield f"{'#' * (1 + len(words))} {' '.join(words)}\n"
            yield _help(command)
            yield from _sections(command, words)


def main() -> int:
    """Write or compare all of it."""
    only_check = "--check" in sys.argv[1:]
    pages = {
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "commands.md": commands_page(),
    }
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if only_check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; run: make docs")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def _help(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = lambda prog: tree.HelpFormatter(prog, width=100)
    return f"```\n{parser.format_help().strip()}\n```\n"


if __name__ == "__main__":
    sys.exit(main())
