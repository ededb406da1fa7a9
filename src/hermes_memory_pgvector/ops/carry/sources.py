"""The kinds of sources, and the rows that each of them holds: all but a state.db, which is in `state`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.capture.transcript import metadata_of
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, SchemaError
from hermes_memory_pgvector.mirror import memory_file
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.ops.carry import export, file
from hermes_memory_pgvector.ops.carry.ends import is_dsn, login_of
from hermes_memory_pgvector.ops.carry.intake import Found
from hermes_memory_pgvector.ops.carry.lines import Lines, documents, memory
from hermes_memory_pgvector.ops.host_past import PAGE_ROWS, reading
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.postgres.statements import one
from hermes_memory_pgvector.terminal import progress
from hermes_memory_pgvector.terminal.progress import Bar
from hermes_memory_pgvector.text.clean import capped, text_of
from hermes_memory_pgvector.values import Target

if TYPE_CHECKING:
    from hermes_memory_pgvector.ops.carry.import_ import ImportSource

READ_SECONDS = 24 * 3600.0
FACTS = (
    "SELECT fact_id, content, category, tags, trust_score, coalesce(created_at, updated_at) FROM facts"
    " WHERE fact_id > ? ORDER BY fact_id LIMIT ?"
)


def files(wanted: ImportSource, _: Counter[str], _bar: Bar) -> Iterator[Found]:
    """The entries of a MEMORY.md and a USER.md, as old as their file."""
    path = wanted.path
    folder = path / "memories" if (path / "memories").is_dir() else path
    # A profile's entries go to its own theme.
    whose = replace(wanted, home=folder.parent) if folder.parent.parent.name == "profiles" else wanted
    for target, name in memory_file.FILE_NAMES.items():
        path = folder / name
        if not path.is_file():
            continue
        found = memory_file.read(path, wanted.settings.memory_max_chars)
        if found is None:
            raise ConfigError(f"{path} cannot be read")
        at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        yield from (Found(memory(whose.own_theme, target, entry, at, {})) for entry in found)


def holographic(wanted: ImportSource, _: Counter[str], bar: Bar) -> Iterator[Found]:
    """The facts of the Holographic memory."""
    last, theme = -1, wanted.own_theme
    with reading(wanted.path) as store:
        (total,) = store.execute("SELECT count(*) FROM facts").fetchone()
        bar.part("", unit="row", total=total)
        while page := store.execute(FACTS, (last, PAGE_ROWS)).fetchall():
            last = page[-1][0]
            bar.advance(len(page))
            for _id, content, category, tags, trust, created in page:
                kept = {"category": category, "tags": tags, "trust_score": trust}
                words = capped(text_of(content), wanted.settings.memory_max_chars)
                told = {"imported_from": "holographic", **{key: each for key, each in kept.items() if each}}
                if words:
                    target: Target = "user" if str(category).startswith("user") else "memory"
                    yield Found(memory(theme, target, words, _time(created), metadata_of(told)))


def lines(wanted: ImportSource, left_out: Counter[str], bar: Bar) -> Iterator[Found]:
    """The objects of a file of JSON."""
    name, now = wanted.source, datetime.now(UTC)
    changed = now
    if name != file.STANDARD:
        name, changed = str(wanted.path), datetime.fromtimestamp(wanted.path.stat().st_mtime, UTC)
    reader = Lines(name, wanted.own_theme, wanted.settings, changed, now, left_out)
    with file.reading(name) as (stream, position):
        is_file = name != file.STANDARD
        total = wanted.path.stat().st_size if is_file else None
        bar.part("", unit=progress.BYTE if is_file else "row", total=total)
        for found in reader.read(documents(stream, name)):
            yield found
            bar.update(position()) if is_file else bar.advance()


def database(wanted: ImportSource, left_out: Counter[str], bar: Bar) -> Iterator[Found]:
    """The memories and turns of another database, ours or the published package's, as lines of an export."""
    now = datetime.now(UTC)
    reader = Lines(wanted.name, wanted.own_theme, wanted.settings, now, now, left_out)
    with (
        _pool(wanted) as pool,
        pool.transaction(Deadline.after(READ_SECONDS), pause_seconds=READ_SECONDS) as connection,
    ):
        is_ours, is_known = one(connection, "carry/tables")
        if not is_known:
            raise SchemaError(
                "the database has neither our tables nor those of the published package in its search_path"
            )
        values: dict[str, Any] = {"theme": wanted.theme or None}
        values |= {"since": None, "until": None, "hidden": True} if is_ours else {}
        rows, count = (
            ("carry/rows", "carry/row_count") if is_ours else ("carry/published_rows", "carry/published_count")
        )
        bar.part("", unit="row", total=export.row_count(connection, values, count))
        for found in reader.read(enumerate(export.fetched(connection, rows, values), start=1)):
            yield found
            bar.advance()


KINDS: Final[Mapping[str, Callable[[ImportSource, Counter[str], Bar], Iterator[Found]]]] = {
    "files": files, "holographic": holographic, "lines": lines, "database": database,
}  # fmt: skip


@contextmanager
def _pool(wanted: ImportSource) -> Iterator[Pool]:
    if not is_dsn(wanted.source):
        with parts.embedded_pool(wanted.path) as pool:
            yield pool
        return
    login = login_of(wanted.source)
    with closing(Pool(lambda _: login, maximum=1, connect_seconds=wanted.settings.connect_timeout)) as pool:
        yield pool


def _time(value: Any) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return datetime.now(UTC)
    return min(at if at.tzinfo is not None else at.replace(tzinfo=UTC), datetime.now(UTC))
