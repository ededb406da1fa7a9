"""`status`: what is stored, what is waiting, and which processes are running."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.engine import refusals
from hermes_memory_pgvector.errors import Held, MemoryPluginError
from hermes_memory_pgvector.setup import journal_database, journal_report, parts, terminal
from hermes_memory_pgvector.setup.checks.model import REEMBED, difference, share
from hermes_memory_pgvector.terminal.sink import Styled

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Parsed, Settings
    from hermes_memory_pgvector.engine.status_file import Snapshot
    from hermes_memory_pgvector.setup.journal_report import JournalReport
    from hermes_memory_pgvector.store.expiry import Due
    from hermes_memory_pgvector.store.overview import Contents, ServerFacts
    from hermes_memory_pgvector.store.reembedding import Change
    from hermes_memory_pgvector.values import EmbeddingModel

NAME = "status"
ALIASES = ("stats",)
HELP = "show what is stored, what waits, and who is at work"
GROUP = "see"
EXAMPLES = (
    ("status", "what is stored and what is waiting"),
    ("status --fleet", "every process and agent of the database, on whichever machine"),
    ("status --top 5 --json", "for a script"),
)

READ_SECONDS = 120.0
SOON_DAYS = 7


@dataclass(frozen=True, slots=True)
class Stored:
    """What the database holds."""

    server: ServerFacts
    contents: Contents
    model: EmbeddingModel | None
    change: Change | None
    """The change of the model that is under way."""
    vectors_pending: int
    dead_letters: int
    expiring: tuple[Due, ...]
    """Turns that are about to go because they are older than they are kept."""
    quarantined: dict[str, int]
    """How many turns and memories are kept out of recall."""
    masked_secrets: dict[str, int]
    """By kind: how many secrets were masked in what is stored."""
    marks: dict[str, int]
    objection: str
    """Why the journal does not go to this database; empty when it does."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.add_common(parser)
    parser.add_argument(
        "--top", type=options.positive, default=20, metavar="N", help="themes or agents to list (default: 20)"
    )
    parser.add_argument(
        "--fleet", action="store_true", help="show the processes and agents of the whole database instead"
    )


def run(args: argparse.Namespace) -> int:
    """Show everything; without the database, show what is known and exit with 2."""
    if args.fleet:
        from hermes_memory_pgvector.cli import fleet

        return fleet.run(args)
    home = options.home_of(args)
    parsed = load(home)
    settings = parsed.settings
    stored: Stored | None = None
    problem: MemoryPluginError | None = None
    try:
        stored = read(home, settings, args.top)
    except MemoryPluginError as error:
        problem = error
    report = journal_report.report(home, stored.marks if stored else None)
    if args.json:
        terminal.as_json(_document(home, parsed, stored, report, problem))
    else:
        _tell(home, parsed, stored, report, problem)
    if problem is not None:
        return 1 if isinstance(problem, Held) else 2
    return 1 if stored is not None and stored.objection else 0


def read(home: Path, settings: Settings, top: int) -> Stored:
    """Read everything in one connection."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store import (
        dead_letters,
        expiry,
        overview,
        quarantine,
        reembedding,
        schema,
        vectors,
        watermarks,
    )
    from hermes_memory_pgvector.store.current_model import current_model

    rules = expiry.Rules.of(settings, datetime.now(UTC)).of_home(home_id(home), None)
    with (
        parts.open_pool(home, settings) as pool,
        pool.transaction(Deadline.after(READ_SECONDS)) as connection,
    ):
        schema.verify(connection)
        return Stored(
            server=overview.server_facts(connection),
            contents=overview.contents(connection, top),
            model=current_model(connection),
            change=reembedding.under_way(connection),
            vectors_pending=vectors.count(connection)[0],
            dead_letters=len(dead_letters.newest(connection, 10_000)),
            expiring=tuple(expiry.due(connection, rules, SOON_DAYS)) if not rules.is_empty else (),
            masked_secrets=overview.masked_secrets(connection),
            quarantined=dict(zip(("turns", "memories"), quarantine.totals(connection), strict=True)),
            marks=watermarks.read(connection, journal_report.writers(home)),
            objection=journal_database.objection(home, settings, connection),
        )


def _document(
    home: Path,
    parsed: Parsed,
    stored: Stored | None,
    report: JournalReport,
    problem: MemoryPluginError | None,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "home": str(home),
        "database": parts.describe_database(home, parsed.settings),
        "embedding": parts.describe_embedder(home, parsed.settings),
        "error": str(problem) if problem else None,
        "configuration": list(parsed.troubles),
        "held": _held(parsed, stored) or None,
        "model_differs": None if stored is None else difference(home, parsed.settings, stored.model) or None,
        "stored": None,
        "journal": {
            **report.totals(),
            "writers": [asdict(each) for each in report.writers],
        },
        "processes": [asdict(each) for each in report.processes],
    }
    if stored is not None:
        told = asdict(stored)
        del told["marks"], told["objection"]
        document["stored"] = {**told.pop("contents"), **told}
    return document


def _tell(
    home: Path,
    parsed: Parsed,
    stored: Stored | None,
    report: JournalReport,
    problem: MemoryPluginError | None,
) -> None:
    from hermes_memory_pgvector.embedding.configured import setting_fault

    settings = parsed.settings
    terminal.say("Memory of ", terminal.styled(home, "strong"))
    for trouble in parsed.troubles:
        meanwhile = "nothing is stored" if settings.hold else "the last good settings are used"
        terminal.bullet("problem", f"{trouble}; {meanwhile}", "fix it")
    if stored is not None and stored.objection:
        terminal.bullet("problem", f"nothing is stored: {stored.objection}")
    if stored is None:
        terminal.bullet("problem", f"database: {problem}", "to check everything: hermes-pgvector doctor")
    else:
        _tell_stored(parts.describe_database(home, settings), stored)
    fault = setting_fault(home, settings)
    other = "" if stored is None or fault else difference(home, settings, stored.model)
    if other:
        terminal.bullet(
            "problem",
            f"{other}: its new rows wait for vectors, and recall falls back to keywords for some or all rows",
            f"set embed_model to the database's model, or change that for everybody: {REEMBED}",
        )
    if fault:
        terminal.bullet(
            "problem", f"embedder: {fault}", "rows wait for vectors and recall falls back to keyword search"
        )
    terminal.say()
    _tell_waiting(stored, report)
    if report.processes:
        terminal.say()
        tell_processes(report)


def _held(parsed: Parsed, stored: Stored | None) -> str:
    """Why nothing is stored, although there may be a database."""
    return parsed.settings.hold or ("" if stored is None else stored.objection)


def _tell_stored(where: str, stored: Stored) -> None:
    server, model, change, contents = stored.server, stored.model, stored.change, stored.contents
    size = terminal.size(server.database_bytes)
    rows = [
        ("database", where),
        ("server", f"Postgres {server.version}, pgvector {server.pgvector}, {size}, as role {server.role}"),
        (
            "model",
            f"{model.name}, {model.dim} dimensions" if model else f"none yet; run: {terminal.command('migrate')}",
        ),
        *([("changing to", f"{change.model.name}, {change.model.dim} dimensions: {share(change)}")] if change else []),
        (
            "stored",
            f"{terminal.count(contents.memories, 'memory', 'memories')}, {terminal.count(contents.turns, 'turn')} "
            f"in {terminal.count(contents.theme_count, 'theme')}",
        ),
    ]
    held = stored.quarantined
    if any(held.values()):
        told = f"{terminal.count(held['memories'], 'memory', 'memories')}, {terminal.count(held['turns'], 'turn')}"
        rows.append(("quarantine", f"{told} kept out of recall; see: {terminal.command('quarantine', '--list')}"))
    if stored.masked_secrets:
        kinds = ", ".join(f"{terminal.number(found)} {kind}" for kind, found in stored.masked_secrets.items())
        rows.append(("secrets", f"{terminal.number(sum(stored.masked_secrets.values()))} masked: {kinds}"))
    terminal.pairs(rows)
    if not contents.themes:
        return
    terminal.say()
    terminal.table(
        ("theme", "memories", "turns", "newest"),
        [
            (
                terminal.styled(each.theme, "name"),
                terminal.number(each.memories),
                terminal.number(each.turns),
                terminal.ago(each.newest),
            )
            for each in contents.themes
        ],
        right=(1, 2),
    )
    if contents.theme_count > len(contents.themes):
        terminal.say(f"  and {terminal.count(contents.theme_count - len(contents.themes), 'theme')} more; see --top")


def _tell_waiting(stored: Stored | None, report: JournalReport) -> None:
    oldest = f", the oldest for {terminal.seconds(report.oldest_age_seconds)}" if report.records else ""
    rows = [("journal", f"{terminal.count(report.records, 'record')} waiting for Postgres{oldest}")]
    if stored is not None:
        rows.append(("embedding", f"{terminal.count(stored.vectors_pending, 'row')} waiting for a vector"))
        if stored.expiring:
            now, soon = (sum(getattr(each, name) for each in stored.expiring) for name in ("now", "soon"))
            rows.append(
                ("expiring", f"{terminal.count(now, 'turn')} now, {terminal.number(soon)} more within {SOON_DAYS} days")
            )
        hint = f"; see: {terminal.command('journal', 'dead', 'list')}" if stored.dead_letters else ""
        rows.append(("rejected", f"{terminal.count(stored.dead_letters, 'dead letter')}{hint}"))
    if report.for_newer:
        rows.append(("newer", f"{terminal.count(report.for_newer, 'journal')} for a newer version of this package"))
    if report.refused:
        told = f"{terminal.count(report.refused, 'write')}: {report.refused_recovered} recovered, "
        rows.append(("refused", f"{told}{report.refused_waiting} waiting, {report.refused_lost} lost"))
    if report.left is not None:
        rows.append(("not stored", refusals.sentence(report.left)))
    if report.stored_again or report.gone:
        again = f"{terminal.count(report.stored_again, 'record')} stored again from the journal"
        rows.append(("went back", f"the database has gone back to an earlier state: {again}, {report.gone} gone"))
    if report.damaged:
        rows.append(("damaged", f"{terminal.count(report.damaged, 'segment')} kept aside"))
    terminal.pairs(rows)
    waiting = [each for each in report.writers if each.records]
    if waiting:
        terminal.table(
            ("journal of", "records", "size", "oldest"),
            [
                (each.process, terminal.number(each.records), terminal.size(each.bytes),
                 terminal.seconds(each.oldest_age_seconds))
                for each in waiting
            ],
            right=(1, 2),
            indent=4,
        )  # fmt: skip


def tell_processes(report: JournalReport) -> None:
    """The live processes and the problems each reports."""
    terminal.table(
        ("process", "stored", "waiting", "embedded", "state"),
        [
            (
                f"{each.command} {each.pid}",
                terminal.number(each.writer_stored),
                terminal.number(each.writer_waiting),
                terminal.number(each.backlog_embedded),
                _state(each),
            )
            for each in report.processes
        ],
        right=(1, 2, 3),
    )


def _state(process: Snapshot) -> Styled:
    told = [f"{breaker.name}: {breaker.reason}" for breaker in process.open_breakers]
    if process.failed_hooks:
        told.append(f"{terminal.count(process.failed_hooks, 'hook call')} failed: {process.latest_failure}")
    return terminal.styled("; ".join(told), "problem") if told else terminal.styled("all well", "ok")
