"""Whether all is well, in words: a quick look for the strip on top of the page, and all of doctor's checks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector.config.settings import Parsed
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.embedding.configured import setting_fault
from hermes_memory_pgvector.errors import Held, MemoryPluginError, SchemaError
from hermes_memory_pgvector.ops import belonging as journal_database
from hermes_memory_pgvector.ops import journals as journal_report
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.setup.checks import examination, journal
from hermes_memory_pgvector.ops.setup.checks.database import Seen
from hermes_memory_pgvector.ops.setup.checks.finding import Finding, ok, problem, warning
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.store import dead_letters, vectors, watermarks
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.web import access
from hermes_memory_pgvector.web.asked import Asked, Document

QUICK_SECONDS = 4.0
MOST_LETTERS = 1000
_COMMAND = re.compile(r"(?:^|: )((?:hermes-pgvector|hermes config|pip install|python3) [^;]+)$")
_LEVELS = ("problem", "warning", "ok")


def health(asked: Asked) -> Document:
    """The state of every part, the worst first; never fails."""
    home = asked.home
    if not access.is_set_up(home):
        said = problem("memory", "there is no memory in this home yet", "hermes-pgvector up")
        return {**_document([said]), "set_up": False}
    return {**_document(_quick(home)), "set_up": True}


def checks(asked: Asked) -> Document:
    """All of doctor's checks, which may take a while."""
    findings = list(examination.examine(asked.home))
    return {**_document(findings), "set_up": access.is_set_up(asked.home), "summary": examination.summary(findings)}


def _quick(home: Path) -> Iterator[Finding]:
    parsed, seen = load(home), Seen()
    yield from _configuration(parsed)
    engine = access.engine_of(home)
    started = time.perf_counter()
    try:
        with access.reading(home, QUICK_SECONDS) as connection:
            took = terminal.seconds(time.perf_counter() - started)
            yield ok("database", f"{parts.describe_database(home, parsed.settings)}; answers in {took}")
            yield from _stored(home, parsed, connection, seen)
    except SchemaError as error:
        yield problem("schema", str(error), "hermes-pgvector migrate")
    except Held as error:
        yield problem("database", f"nothing is stored: {error}", "hermes-pgvector config show")
    except MemoryPluginError as error:
        hint = "hermes-pgvector doctor" if parsed.settings.dsn else "hermes-pgvector up"
        text = f"{parts.describe_database(home, parsed.settings)}: {error}. What agents say is kept in the journal"
        yield problem("database", text, hint, unreachable=True)
    yield _embedder(home, parsed, engine)
    yield from journal.waiting(home, seen)


def _configuration(parsed: Parsed) -> Iterator[Finding]:
    for each in parsed.troubles:
        yield problem("settings", each, "fix it")
    for each in parsed.problems:
        yield problem("settings", each, "hermes-pgvector config show")


def _stored(home: Path, parsed: Parsed, connection: Connection, seen: Seen) -> Iterator[Finding]:
    objection = journal_database.objection(home, parsed.settings, connection)
    if objection:
        yield problem("journal", f"nothing is stored: {objection}", "hermes-pgvector config set dsn DSN")
    pending, due = vectors.count(connection)
    seen.marks = watermarks.read(connection, journal_report.writers(home))
    seen.dead_letters = len(dead_letters.newest(connection, MOST_LETTERS))
    if not pending:
        yield ok("vectors", "no row waits for a vector")
    else:
        text = f"{terminal.count(pending, 'row')} without a vector; keyword search finds them meanwhile"
        is_stuck = due and not any(each.writer_waiting for each in journal_report.report(home, seen.marks).processes)
        hint = "agents make them while they run; to make them now: hermes-pgvector backfill"
        yield warning("vectors", text, hint) if is_stuck else ok("vectors", text)


def _embedder(home: Path, parsed: Parsed, engine: Engine) -> Finding:
    fault = setting_fault(home, parsed.settings)
    if fault:
        return problem("embedder", f"{fault}; recall finds by words only", "hermes-pgvector config show")
    breaker = next((each for each in engine.breakers() if each.name == engine.embedder.breaker.status().name), None)
    if breaker is not None and breaker.state != "closed":
        return warning("embedder", f"{breaker.reason}; recall finds by words only", "hermes-pgvector doctor")
    return ok("embedder", parts.describe_embedder(home, parsed.settings))


def _document(found: Iterable[Finding]) -> Document:
    findings = sorted(found, key=lambda each: _LEVELS.index(each.level))
    return {
        "level": findings[0].level if findings else "ok",
        "checks": [_finding(each) for each in _joined(findings)],
        "checked_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _joined(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without a second "all well" of the same part."""
    kept: dict[tuple[str, str], Finding] = {}
    for each in findings:
        key = (each.name, each.level if each.level == "ok" else each.text)
        known = kept.get(key)
        kept[key] = each if known is None else replace(known, text=f"{known.text}; {each.text}")
    return list(kept.values())


def _finding(finding: Finding) -> Document:
    command = _COMMAND.search(finding.hint)
    return {
        "name": finding.name,
        "level": finding.level,
        "text": finding.text,
        "hint": finding.hint,
        "command": command[1] if command else "",
    }
