"""Writes the generated files: the settings, commands and JSON pages. `--check` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from hermes_memory_pgvector import command_line, tour
from hermes_memory_pgvector.config.settings import DECLARATIONS, DEFAULTS, GROUPS, plain
from hermes_memory_pgvector.ops.browse import processes, shapes, show, status
from hermes_memory_pgvector.ops.carry import export, import_
from hermes_memory_pgvector.ops.correct import add, changing, mute
from hermes_memory_pgvector.ops.embed import reembed
from hermes_memory_pgvector.ops.explain import lost, recall, why
from hermes_memory_pgvector.ops.fleet import metrics
from hermes_memory_pgvector.ops.forget import request, verification
from hermes_memory_pgvector.ops.setup import checks, config, doctor, migrate, up
from hermes_memory_pgvector.store import audit_log, browse, receipts
from hermes_memory_pgvector.terminal import program as tree
from hermes_memory_pgvector.terminal.operation import Note, Page, Plan

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
RARE = """
These are read so that existing configurations keep working; `config show` lists them only when they are set."""
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


JSON_HEAD = """# Output for scripts

With `--json`, a command prints one document, and the page's server answers a request with the same one. Keys may be
added; those here stay. Times are ISO 8601, in UTC; `null` stands for what is missing. `list --follow` and `export`
print a row a line. An error is `{"error": …}`; an option that a command does not have is reported on standard error
alone. Rows carry the names by which they can be asked for again: `m12`, `t345`, `e57`, `d3`.

`agent_identity` is the theme; `origin` says what wrote a row, and `untrusted` whether its exchange had read a
stranger's text. `next` goes back in as `--page`, and is `null` on the last page. `executed` is false for a dry run;
`left` is what is not done, and who can do it.

Exit codes: 0 done; 1 an error, such as a theme or an id that does not exist, or something found that should not be
there; 2 wrong usage, or a database or an embedder out of reach; 3 work remains.
"""
DOCUMENTS: dict[str, Any] = {
    "up": up.SetUp, "up --stop": up.Stopped, "try": tour.Toured, "config show": config.SettingsFacts,
    "config get": config.SettingFacts, "config set, config unset": config.ChangedSetting, "migrate": migrate.Migrated,
    "migrate --print": migrate.Script, "uninstall": Plan, "status": status.StatusFacts,
    "status --fleet": status.FleetFacts, "doctor": doctor.Examined, "list": Page, "show m12, show t34": show.RowFacts,
    "show e5": show.EventFacts, "show d3": show.RejectedFacts, "show SESSION": show.SessionFacts,
    "recall": recall.Recalled, "why": why.Given, "why --query": why.Reasons, "why ROW": lost.Lost, "add": add.Added,
    "edit, undo": changing.Correction, "mute": mute.Muting, "theme": Plan, "forget": request.Forgetting,
    "forget --verify": verification.Verified, "import": import_.Imported, "export --output": export.Exported,
    "promote, backup, journal": Plan, "reembed": reembed.Reembedded,
    "reembed --status, --cancel, --drop-old": reembed.VectorModels,
    "metrics": metrics.Numbers,
}  # fmt: skip
"""What each command prints; `ui` and `mcp` go on until they are ended."""
ROWS: dict[str, Any] = {
    "list memories, list turns": shapes.StoredRow, "list themes": browse.Theme, "list sessions": browse.SessionRow,
    "list events, history of show": shapes.EventRow, "list audit": audit_log.AuditRow, "list hidden": shapes.HiddenLine,
    "list rejected": shapes.RejectedLine, "list receipts": receipts.Receipt, "turns of show": show.SaidLine,
    "themes of status": status.ThemeCount, "processes of status": processes.ProcessLine,
    "results of recall": recall.HitLine, "places of forget --verify": verification.Place,
    "checks of doctor, checks of up": checks.Finding,
    "notes, left": Note,
}  # fmt: skip


def json_page() -> str:
    """The keys of every document, and of the rows in them."""
    told = {name.split()[0] for names in DOCUMENTS for name in names.split(", ")}
    missing = {each.name for each in command_line.EVERY if each.is_listed} - told - {"ui", "mcp"}
    assert not missing, f"nothing is said of what these print: {missing}"
    lines = [JSON_HEAD]
    for title, known in (("Documents", DOCUMENTS), ("Rows", ROWS)):
        lines += [f"## {title}\n", "| of | keys |", "|---|---|"]
        lines += [f"| {_coded(name.split(', '))} | {_coded(_keys(kind))} |" for name, kind in known.items()]
        lines.append("")
    return NOTE + "\n".join(lines)


def _keys(kind: Any) -> list[str]:
    return [each.name for each in fields(kind) if "aside" not in each.metadata]


def _coded(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def main() -> int:
    """Write or compare all of it."""
    only_check = "--check" in sys.argv[1:]
    pages = {
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "commands.md": commands_page(),
        REFERENCE / "json.md": json_page(),
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
