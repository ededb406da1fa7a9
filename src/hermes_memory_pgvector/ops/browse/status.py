"""`status`: what is stored, what waits, and which processes are at work; with `--fleet`, those of every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.errors import Held, MemoryPluginError
from hermes_memory_pgvector.ops.browse.processes import ProcessLine, of_file, of_row
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, parse
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.ops.journals import JournalReport
    from hermes_memory_pgvector.postgres.pool import Connection

SOON_DAYS: Final = 7
MOST_PROCESSES: Final = 10_000
MOST_REJECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class ThemeCount:
    """How much a theme holds."""

    theme: str = column("theme")
    memories: int = column("memories", right=True, default=0)
    turns: int = column("turns", right=True, default=0)
    newest: datetime | None = column("last write", show=amounts.ago)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """The journal of a process, where something waits in it."""

    process: str = column("journal of")
    records: int = column("records", right=True, default=0)
    bytes: int = column("size", right=True, default=0, show=amounts.size)
    oldest_age_seconds: float = column("oldest", default=0.0, show=amounts.seconds)


@dataclass(frozen=True, slots=True)
class StatusFacts(Facts):
    """How a memory is doing."""

    home: str = column("home")
    database: str = column("database")
    server: str = column("server", rare=True, is_aside=True)
    model: str = column("model", rare=True, is_aside=True)
    holds: str = column("stored", rare=True, is_aside=True)
    hidden: str = column("hidden", rare=True, is_aside=True)
    secrets: str = column("secrets", rare=True, is_aside=True)
    waits: str = column("journal", is_aside=True)
    vectors: str = column("embedding", rare=True, is_aside=True)
    expiring: str = column("expiring", rare=True, is_aside=True)
    rejected: str = column("rejected", rare=True, is_aside=True)
    themes: tuple[ThemeCount, ...] = ()
    journals: tuple[JournalLine, ...] = aside(())
    processes: tuple[ProcessLine, ...] = ()
    stored: Mapping[str, Any] | None = None
    journal: Mapping[str, Any] = field(default_factory=dict)
    embedding: str = ""
    configuration: tuple[str, ...] = ()
    held: str | None = None
    model_differs: str | None = None
    error: str | None = None
    notes: tuple[Note, ...] = ()
    exit_code: int = aside(0)


@dataclass(frozen=True, slots=True)
class FleetFacts(Facts):
    """The processes of a whole database."""

    database: str = column("fleet of")
    counted: str = column("processes", is_aside=True)
    processes: tuple[ProcessLine, ...] = ()
    error: str | None = None
    notes: tuple[Note, ...] = ()
    exit_code: int = aside(0)


def status(memory: Memory, *, fleet: bool, limit: int) -> StatusFacts | FleetFacts:
    """Everything that is known; without the database, what this home knows itself."""
    return _fleet(memory, limit) if fleet else _home(memory, limit)


def _home(memory: Memory, limit: int) -> StatusFacts:
    from hermes_memory_pgvector.embedding.configured import setting_fault
    from hermes_memory_pgvector.ops import belonging, journals, parts
    from hermes_memory_pgvector.ops.setup.checks import difference
    from hermes_memory_pgvector.postgres import buckets
    from hermes_memory_pgvector.store import watermarks

    settings, troubles = memory.parsed.settings, memory.parsed.troubles
    stored: dict[str, Any] = {}
    marks, away, objection, differs, problem = None, "", "", "", None
    try:
        with memory.reading() as connection:
            # What can be told without the buckets that do not answer comes first: the views need all of them.
            marks = watermarks.everywhere(connection, journals.writers(memory.home))
            away = buckets.silent(connection)
            stored = _read(memory, connection, settings, limit)
            objection = belonging.objection(memory.home, settings, connection)
            differs = difference(memory.home, settings, (stored["model"] or {}).get("name"))
    except MemoryPluginError as error:
        problem = error
    report = journals.report(memory.home, marks)
    fault = setting_fault(memory.home, settings)
    differs = "" if fault else differs
    notes = (
        *_more(stored, limit), *_kept_out(memory),
        *([Note("problem", away)] if away else []),
        *_faults(troubles, settings, objection, problem, differs, fault),
        *journals.oddities(report),
    )  # fmt: skip
    waiting = [each for each in report.writers if each.records and marks is not None]
    return StatusFacts(
        str(memory.home), parts.describe_database(memory.home, settings), **_told(stored),
        waits=_waits(report, is_known=marks is not None),
        themes=tuple(ThemeCount(**each) for each in stored.get("themes", ())),
        journals=tuple(
            JournalLine(each.process, each.records, each.bytes, each.oldest_age_seconds) for each in waiting
        ),
        processes=tuple(map(of_file, report.processes)), stored=stored or None,
        journal={**report.totals(), "writers": [asdict(each) for each in report.writers]},
        embedding=parts.describe_embedder(memory.home, settings), configuration=tuple(troubles),
        held=settings.hold or objection or None, model_differs=differs or None, error=str(problem) if problem else None,
        notes=notes, exit_code=(1 if isinstance(problem, Held) else 2) if problem else 1 if objection else 0,
    )  # fmt: skip


def _read(memory: Memory, connection: Connection, settings: Settings, limit: int) -> dict[str, Any]:
    """What the database says."""
    from hermes_memory_pgvector.config.home import home_id
    from hermes_memory_pgvector.store import dead_letters, expiry, hidden, overview, vectors
    from hermes_memory_pgvector.store.models import current_model

    rules = expiry.Rules.of(settings, datetime.now(UTC)).of_home(home_id(memory.home), None)
    model = current_model(connection)
    expiring = [] if rules.is_empty else expiry.due(connection, rules, SOON_DAYS)
    return {
        **asdict(overview.contents(connection, limit)),
        "server": asdict(overview.server_facts(connection)),
        "model": None if model is None else asdict(model),
        "vectors_pending": vectors.count(connection)[0],
        "dead_letters": len(dead_letters.newest(connection, MOST_REJECTED)),
        "expiring": [each._asdict() for each in expiring],
        "hidden": dict(zip(("turns", "memories"), hidden.totals(connection), strict=True)),
        "masked_secrets": overview.masked_secrets(connection),
    }


def _told(stored: Mapping[str, Any]) -> dict[str, str]:
    """What is stored, in words."""
    if not stored:
        return {}
    server, model = stored["server"], stored["model"]
    kept_out, secrets = stored["hidden"], stored["masked_secrets"]
    now, soon = (sum(each[name] for each in stored["expiring"]) for name in ("now", "soon"))
    return {
        "server": f"Postgres {server['version']}, pgvector {server['pgvector']}, "
        f"{amounts.size(server['database_bytes'])}, as role {server['role']}",
        "model": f"{model['name']}, {model['dim']} dimensions" if model else "none yet",
        "holds": f"{_rows(stored)} in {amounts.count(stored['theme_count'], 'theme')}",
        "hidden": f"{_rows(kept_out)} kept out of recall" if any(kept_out.values()) else "",
        "secrets": f"{sum(secrets.values()):,} masked: " + ", ".join(f"{n:,} {kind}" for kind, n in secrets.items())
        if secrets else "",
        "vectors": f"{amounts.count(stored['vectors_pending'], 'row')} waiting for a vector",
        "expiring": f"{amounts.count(now, 'turn')} now, {soon:,} more within {SOON_DAYS} days" if now or soon else "",
        "rejected": amounts.count(stored["dead_letters"], "record") if stored["dead_letters"] else "",
    }  # fmt: skip


def _more(stored: Mapping[str, Any], limit: int) -> Iterator[Note]:
    more = stored.get("theme_count", 0) - limit
    if more > 0:
        yield Note("note", f"{amounts.count(more, 'theme')} more; see --limit")


def _kept_out(memory: Memory) -> Iterator[Note]:
    """What hermes is set to, where it knows this memory: a home that only keeps rows uses none."""
    from hermes_memory_pgvector.ops.setup import kept_out, plugin_folder

    if plugin_folder.ours(memory.home):
        for each in kept_out.reasons(memory.home):
            yield Note("problem" if each.is_off else "warning", each.reason, each.remedy)


def _rows(counted: Mapping[str, Any]) -> str:
    return f"{amounts.count(counted['memories'], 'memory', 'memories')}, {amounts.count(counted['turns'], 'turn')}"


def _waits(report: JournalReport, *, is_known: bool) -> str:
    from hermes_memory_pgvector.ops.journals import ENDED

    if not is_known:
        # Without watermarks, what has been stored and is kept for a while cannot be told from what waits.
        waiting = sum(each.writer_waiting for each in report.processes)
        told = f"{amounts.count(waiting, 'record')} of live processes waiting for Postgres"
        ended = sum(each.records for each in report.writers if each.process == ENDED)
        return f"{told}, and of ended ones at most {ended:,}" if ended else told
    oldest = f", the oldest for {amounts.seconds(report.oldest_age_seconds)}" if report.records else ""
    return f"{amounts.count(report.records, 'record')} waiting for Postgres{oldest}"


def _faults(
    troubles: Sequence[str], settings: Settings, objection: str, problem: Exception | None, differs: str, fault: str
) -> Iterator[Note]:
    """What is wrong, and what mends it."""
    meanwhile = "nothing is stored" if settings.hold else "the last good settings are used"
    for each in troubles:
        yield Note("problem", f"{each}; {meanwhile}", "fix it")
    if objection:
        yield Note("problem", f"nothing is stored: {objection}")
    if problem is not None:
        yield Note("problem", f"database: {problem}", "to check everything", command("doctor"))
    if differs:
        from hermes_memory_pgvector.ops.setup.checks import remedy

        text = f"{differs}: its new rows wait for vectors, and recall falls back to keywords for some or all rows"
        hint = "set embed_model to the database's model, or change that for everybody"
        yield Note("problem", text, hint, command(*remedy(settings)))
    if fault:
        yield Note("problem", f"embedder: {fault}", "rows wait for vectors and recall falls back to keyword search")


def _fleet(memory: Memory, limit: int) -> FleetFacts:
    from hermes_memory_pgvector.ops import journals, parts
    from hermes_memory_pgvector.store import processes

    where = parts.describe_database(memory.home, memory.parsed.settings)
    try:
        with memory.reading() as connection:
            found = [of_row(each) for each in processes.listed(connection, MOST_PROCESSES)]
    except MemoryPluginError as error:
        local = tuple(map(of_file, journals.report(memory.home, None).processes))
        notes = (Note("problem", f"database: {error}", "these are the processes of this home alone"),)
        return FleetFacts(where, f"{len(local)} of this home at work", local, str(error), notes, 2)
    ended = [each for each in found if each.ended_at is not None]
    shown = [each for each in found if each.ended_at is None]
    silent = sum(each.state == "silent" for each in shown)
    machines = amounts.count(len({each.host for each in shown}), "machine")
    told = f"{len(shown) - silent:,} at work and {silent:,} silent on {machines}; {len(ended):,} ended in the last day"
    more = len(shown) - limit
    left = [Note("note", f"{amounts.count(more, 'process', 'processes')} more; see --limit")] if more > 0 else []
    return FleetFacts(where, told, tuple(shown[:limit]), notes=tuple(left))


STATUS = Operation(
    "status",
    "show what is stored, what waits, and who is at work",
    (
        Option("--fleet", "show every process of the database instead, on whichever machine", is_flag=True),
        Option("--limit", "themes or processes to list (default: 20)", parse.positive, 20, metavar="N"),
    ),
    status,
    (
        ("status", "what is stored and what is waiting"),
        ("status --fleet", "every process of the database, on whichever machine"),
        ("status --limit 5 --json", "for a script"),
    ),
    aliases={"stats": {}},
)  # fmt: skip
