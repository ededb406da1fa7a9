"""One write and one recall through the real engine, in a theme of its own that is emptied afterwards."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable, SchemaError
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal.operation import Note
from hermes_memory_pgvector.text.clean import turn_digest
from hermes_memory_pgvector.values import BENCH_THEME, AddTurn, Kind, Question, Role

if TYPE_CHECKING:
    from hermes_memory_pgvector.runtime.engine import Engine

STORE_SECONDS = 30.0
FIND_SECONDS = 5.0
SAID: tuple[tuple[Role, str], ...] = (
    ("user", "The dentist moved grandmother's appointment to Thursday at nine, so somebody has to drive her."),
    ("assistant", "Noted: the rental car must be returned with a full tank before noon on Sunday."),
)
# Close in meaning, with one word in common: found even when vectors are turned off.
ASKED = "who takes grandmother to her dental check-up?"


def show(home: Path) -> Generator[Note, None, str]:
    """Write two turns, search for one by meaning, delete both."""
    settings = load(home).settings
    with parts.open_engine(home) as engine:
        session = f"demonstration-{secrets.token_hex(4)}"
        started = time.perf_counter()
        _write(engine, session)
        stored = time.perf_counter()
        try:
            found = _search(engine)
            asked = time.perf_counter()
        finally:
            _delete(engine, session)
    yield Note("ok", f"{'test memory':<17} written, embedded and stored", took=stored - started)
    yield Note("note", f"asked      {ASKED}")
    if found:
        yield Note("note", f"recalled   {found}", took=asked - stored)
    elif settings.min_similarity or not settings.hybrid_search:
        yield Note("warning", "recalled   nothing: min_similarity and hybrid_search, as they are set, keep it out")
    else:
        raise SchemaError(
            "a memory was stored but recall did not find it; please report the output of: hermes-pgvector doctor"
        )
    return found


def _write(engine: Engine, session: str) -> None:
    from hermes_memory_pgvector.journal import Urgency

    engine.start()
    now = engine.clock.now()
    engine.record(
        [AddTurn(BENCH_THEME, session, role, content, 0, now, is_live=True) for role, content in SAID], Urgency.TURN
    )
    if not engine.writer.flush(Deadline.after(STORE_SECONDS)):
        raise DatabaseUnavailable(engine.writer.last_error or "the database does not accept writes")
    engine.flush(Deadline.after(STORE_SECONDS))


def _search(engine: Engine) -> str:
    """The best hit. Another process may be embedding the turns, so an empty answer is retried."""
    question = Question(text=ASKED, kind=Kind.TURN, theme=BENCH_THEME, limit=1)
    deadline = Deadline.after(FIND_SECONDS)
    while True:
        hits = engine.search([question], deadline)[0].hits
        if hits or deadline.remaining() < 1:
            return hits[0].content if hits else ""
        time.sleep(0.05)


def _delete(engine: Engine, session: str) -> None:
    from hermes_memory_pgvector.store import turns

    with engine.pool.transaction(Deadline.after(STORE_SECONDS), theme=BENCH_THEME) as connection:
        turns.drop(connection, BENCH_THEME, session, [turn_digest(role, content) for role, content in SAID])
    # A drained file is kept for a while, and would bring the turns to the database that the home uses next.
    engine.journal.seal(Deadline.after(STORE_SECONDS))
    engine.journal.retire(engine.journal.writer, engine.writer.mark, at_once=True)
