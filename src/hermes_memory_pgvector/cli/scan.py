"""`scan`: find and mask secrets that are stored already."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hermes_memory_pgvector.cli import options, reach
from hermes_memory_pgvector.cli.dry_run import DryRun, Sample
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.care.scanning import Findings

NAME = "scan"
HELP = "find keys, tokens and passwords that are stored, and mask them (a dry run without --execute)"
GROUP = "erase"
EXAMPLES = (
    ("scan", "what is stored although it looks like a secret: a dry run"),
    ("scan --theme marketing --execute", "mask it in one theme"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme")
    parser.add_argument("--execute", action="store_true", help="do it; without this, only show what would change")


def run(args: argparse.Namespace) -> int:
    """Show what would be masked, or mask it."""
    from hermes_memory_pgvector.care.actor import operator
    from hermes_memory_pgvector.care.scanning import Scan
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.store import schema
    from hermes_memory_pgvector.text.secrets import masker_with

    home = options.home_of(args)
    settings = load(home).settings
    theme = None if args.theme is None else options.named("--theme", theme_name(args.theme))
    with parts.open_pool(home, settings) as pool, terminal.progress("Scanning", unit="rows", quiet=args.json) as bar:
        with pool.connection(Deadline.after(60)) as connection:
            schema.verify(connection)
        # Whoever turned masking off for new rows may still want to know what is there.
        found = Scan(
            pool,
            masker_with(settings.secret_rules),
            operator(home),
            theme=theme,
            execute=args.execute,
            wants_vectors=settings.embed_on_write,
            progress=bar.advance,
        ).run()
        if theme is not None and not found.rows:
            reach.require_theme(pool, theme)
    return _tell(args, found)


def _tell(args: argparse.Namespace, found: Findings) -> int:
    again = terminal.command("scan", *options.again("--theme", args.theme), "--execute")
    samples = [
        Sample(f"{each.name}  {each.theme}", each.content, {"id": each.name, "theme": each.theme, "text": each.content})
        for each in found.samples
    ]
    told = DryRun(
        "mask", list(found.rows.items()), samples, execute=again, executed=args.execute, done="masked secrets in"
    )
    if args.json:
        kinds, by_theme = dict(found.kinds.most_common()), dict(sorted(found.themes.items()))
        terminal.as_json({**told.document(), "kinds": kinds, "themes": by_theme, "unreadable": found.unreadable})
        return 0
    told.tell()
    if found.kinds:
        terminal.table(
            ("kind", "found"), [(kind, terminal.number(n)) for kind, n in found.kinds.most_common()], right=(1,)
        )
    if found.rows and args.execute:
        terminal.bullet("note", "whoever could read them may have: change what was stored in plain text")
    if found.unreadable:
        terminal.bullet("warning", f"{terminal.count(found.unreadable, 'dead letter')} could not be read or scanned")
    return 0
