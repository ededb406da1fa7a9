"""`export`: everything that is stored, as one JSON object per line."""

from __future__ import annotations

import argparse
import shlex
from contextlib import ExitStack

from hermes_memory_pgvector.cli import options, reach, times
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.text.names import session_name, theme_name

NAME = "export"
HELP = "write memories and turns as JSON lines"
GROUP = "move"
EXAMPLES = (
    ("export --output memory.jsonl.gz", "everything, compressed"),
    ("export --theme marketing --redact", "one theme to standard output, secrets masked"),
)

NOUNS = {
    "memory": ("memory", "memories"),
    "turn": ("turn", ""),
}
READ_SECONDS = 24 * 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument("--theme", metavar="THEME", help="only this theme")
    parser.add_argument("--session", metavar="ID", help="only turns of this session")
    options.add_origin(parser)
    times.add_range(parser)
    parser.add_argument("--redact", action="store_true", help="mask keys, tokens and passwords")
    parser.add_argument(
        "--output", default="-", metavar="FILE", help="where to; .gz and .zst are compressed (default: standard output)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the rows; on standard output nothing else is printed."""
    from hermes_memory_pgvector.store import schema, taking_along
    from hermes_memory_pgvector.store.taking_along import Selection
    from hermes_memory_pgvector.transfer import export, line_file

    home = options.home_of(args)
    wanted = Selection(
        None if args.theme is None else options.named("--theme", theme_name(args.theme)),
        None if args.session is None else options.named("--session", session_name(args.session)),
        args.since,
        args.until,
        args.origin,
    )
    counts = dict.fromkeys(NOUNS, 0)
    is_stream = args.output == line_file.STANDARD
    with ExitStack() as stack:
        pool = stack.enter_context(parts.open_pool(home, load(home).settings))
        if wanted.theme is not None:
            reach.require_theme(pool, wanted.theme)
        connection = stack.enter_context(taking_along.snapshot(pool, Deadline.after(READ_SECONDS)))
        schema.verify(connection)
        rows = export.rows(connection, wanted, is_redacted=args.redact)
        with (
            terminal.progress("exporting", unit="row", quiet=args.json or is_stream) as bar,
            line_file.writing(args.output) as out,
        ):
            for document in rows:
                out.write(line_file.encoded(document))
                if document["kind"] in counts:
                    counts[document["kind"]] += 1
                    bar.advance()
    if is_stream:
        return 0
    if args.json:
        terminal.as_json({"file": args.output, **counts})
    else:
        # In backticks: for another home than this one, so it is not completed with this one's name.
        again = f"`{terminal.PROGRAM} {shlex.join(['import', 'jsonl', args.output])}`"
        terminal.bullet("ok", f"{args.output}: {_counted(counts)}", f"to bring it in elsewhere: {again}")
    return 0


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(terminal.count(counts[kind], *names) for kind, names in NOUNS.items())
