"""`journal`: what is waiting for the database, and the records it has rejected."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.config.home import homes_of
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import (
    ConfigError,
    DatabaseRejected,
    DatabaseUnavailable,
    Held,
    MemoryPluginError,
    ServerError,
)
from hermes_memory_pgvector.ops import belonging as journal_database
from hermes_memory_pgvector.ops import journals as journal_report
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal
from hermes_memory_pgvector.terminal import program as tree

if TYPE_CHECKING:
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.dead_letters import DeadLetter

NAME = "journal"
HELP = "show what is waiting for the database, and the records it has rejected"
GROUP = "run"
EXAMPLES = (
    ("journal status", "what waits for Postgres, by process"),
    ("journal dead list", "what Postgres rejected permanently"),
)

READ_SECONDS = 15.0
RETRY_SECONDS = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    actions = tree.actions_of(parser, "journal_action")
    tree.add_action(
        actions,
        "status",
        "show what is waiting, by process",
        options.add_common,
        example=("journal status --json", "for a script"),
    )
    accept = tree.add_action(
        actions,
        "accept-database",
        "send waiting records to the database that the settings name now",
        options.add_common,
        example=("journal accept-database --all-profiles", "after an upgrade of Postgres"),
    )
    accept.add_argument("--all-profiles", action="store_true", help="also for every profile that has used a database")
    dead = tree.add_action(actions, "dead", "look at records that Postgres has rejected, and try or drop them")
    choices = tree.actions_of(dead, "dead_action")
    listed = tree.add_action(
        choices, "list", "list them", options.add_common, example=("journal dead list --limit 5", "the newest five")
    )
    listed.add_argument("--limit", type=options.positive, default=50, metavar="N", help="at most (default: 50)")
    show = tree.add_action(
        choices,
        "show",
        "show one record: kinds and sizes; with --content its text",
        options.add_common,
        example=("journal dead show 3 --content", "with what was said"),
    )
    show.add_argument("--content", action="store_true", help="print the text of the record")
    retry = tree.add_action(
        choices,
        "retry",
        "try to store a record again",
        options.add_common,
        example=("journal dead retry 3", "after its cause is mended"),
    )
    drop = tree.add_action(
        choices,
        "drop",
        "delete a record (a dry run without --execute)",
        options.add_common,
        example=("journal dead drop 3 --execute", "for good"),
    )
    drop.add_argument("--execute", action="store_true", help="really do it")
    for each in (show, retry, drop):
        each.add_argument("id", type=options.positive, metavar="ID", help="its number in the list")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    if args.journal_action is None or (args.journal_action == "dead" and args.dead_action is None):
        (args.journal_action_parser if args.journal_action is None else args.dead_action_parser).print_help()
        return 2
    home = options.home_of(args)
    if args.journal_action == "status":
        return _status(home, json=args.json)
    if args.journal_action == "accept-database":
        if args.all_profiles:
            return _accept_everywhere(home, json=args.json)
        where, changed = _accept_database(home)
        _say_accepted(where, changed=changed, json=args.json)
        return 0
    match args.dead_action:
        case "list":
            return _list(home, args.limit, json=args.json)
        case "show":
            return _show(home, args.id, with_content=args.content, json=args.json)
        case "retry":
            return _retry(home, args.id, json=args.json)
        case _:
            return _drop(home, args.id, execute=args.execute, json=args.json)


def _status(home: Path, *, json: bool) -> int:
    from hermes_memory_pgvector.store import watermarks

    problem = ""
    marks: dict[str, int] | None = None
    settings = load(home).settings
    names = journal_report.writers(home)
    try:
        with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(READ_SECONDS)) as connection:
            marks = watermarks.read(connection, names)
    except MemoryPluginError as error:
        problem = str(error)
    report = journal_report.report(home, marks)
    if json:
        terminal.as_json(
            {
                **report.totals(),
                "error": problem or None,
                "writers": [
                    {"writer": each.writer, "process": each.process, "records": each.records, "bytes": each.bytes}
                    for each in report.writers
                ],
            }
        )
        return 2 if problem else 0
    if problem:
        terminal.bullet("problem", f"database: {problem}", "records that are already stored count as waiting here")
    terminal.pairs(
        [
            ("waiting", terminal.count(report.records, "record")),
            ("oldest", terminal.seconds(report.oldest_age_seconds) if report.records else "–"),
            ("on disk", terminal.size(report.bytes_on_disk)),
            ("sync lag", terminal.seconds(report.sync_lag_seconds)),
            ("for a newer version", terminal.count(report.for_newer, "journal")),
            ("refused", terminal.count(report.refused, "write")),
            ("damaged", terminal.count(report.damaged, "segment")),
        ]
    )
    if any(each.records for each in report.writers):
        terminal.say()
        rows = [
            (each.writer, each.process, terminal.number(each.records), terminal.size(each.bytes))
            for each in report.writers
            if each.records
        ]
        terminal.table(("journal", "of", "waiting", "size"), rows, right=(2, 3))
    return 2 if problem else 0


def _accept_database(home: Path) -> tuple[str, bool]:
    """Make the configured database the one the journal belongs to, even when it is out of reach now.

    Returns the database in words, and whether the journal belonged to another one before.
    """
    settings = load(home).settings
    if settings.hold:
        raise Held(settings.hold)
    where = parts.describe_database(home, settings)
    changed = journal_database.accept_configured(home)
    try:
        with parts.open_pool(home, settings) as pool, pool.connection(Deadline.after(READ_SECONDS)) as connection:
            changed = journal_database.accept_connected(home, settings, connection) or changed
    except (DatabaseUnavailable, ServerError):
        # An upgraded server may be on its way up: whoever answers there next is meant.
        changed = journal_database.accept_configured(home, anew=True) or changed
    return where, changed


def _say_accepted(where: str, *, changed: bool, json: bool) -> None:
    if json:
        terminal.as_json({"database": where, "changed": changed})
    else:
        terminal.bullet(
            "ok", f"the journal {'now belongs' if changed else 'already belonged'} to this database: {where}"
        )


def _accept_everywhere(home: Path, *, json: bool) -> int:
    """The same for the root home and its profiles, as far as they have used a database; an error stops no other."""
    done: list[dict[str, Any]] = []
    for each in homes_of(home):
        if not journal_database.is_known(each):
            continue
        try:
            where, changed = _accept_database(each)
            done.append({"home": str(each), "database": where, "changed": changed, "error": None})
        except MemoryPluginError as error:
            done.append({"home": str(each), "database": None, "changed": False, "error": str(error)})
    if json:
        terminal.as_json(done)
    for row in () if json else done:
        if row["error"]:
            terminal.bullet("problem", f"{row['home']}: {row['error']}")
        else:
            verb = "now belongs" if row["changed"] else "already belonged"
            terminal.bullet("ok", f"{row['home']}: the journal {verb} to {row['database']}")
    if not done and not json:
        terminal.bullet("note", "no profile has used a database yet")
    return 1 if any(row["error"] for row in done) else 0


def _list(home: Path, limit: int, *, json: bool) -> int:
    from hermes_memory_pgvector.store import dead_letters

    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(Deadline.after(READ_SECONDS)) as connection,
    ):
        letters = dead_letters.newest(connection, limit)
    if json:
        terminal.as_json([_document(letter) for letter in letters])
    elif not letters:
        terminal.bullet("ok", "no dead letters")
    else:
        rows = [(each.id, terminal.ago(each.at), terminal.size(each.size), each.reason) for each in letters]
        terminal.table(("id", "rejected", "size", "reason"), rows, right=(0, 2))
    return 0


def _show(home: Path, letter_id: int, *, with_content: bool, json: bool) -> int:
    letter, payload = _find(home, letter_id)
    items = _items(payload, with_content=with_content)
    if json:
        terminal.as_json({**_document(letter), "items": items})
        return 0
    terminal.pairs(
        [
            ("id", letter.id),
            ("record", f"{letter.writer}/{letter.position}"),
            ("rejected", terminal.ago(letter.at)),
            ("reason", letter.reason),
            ("size", terminal.size(letter.size)),
        ]
    )
    for item in items:
        terminal.say("  - " + ", ".join(f"{name} {terminal.one_line(value)}" for name, value in item.items()))
    if not with_content:
        terminal.say("  to see its text: --content")
    return 0


def _retry(home: Path, letter_id: int, *, json: bool) -> int:
    from hermes_memory_pgvector.journal import codec
    from hermes_memory_pgvector.store import dead_letters

    letter, payload = _find(home, letter_id)
    reason = ""
    try:
        items = codec.decode(payload)
    except ValueError:
        items, reason = [], "it cannot be read by this version"
    if items:
        try:
            with (
                parts.open_engine(home) as engine,
                engine.pool.transaction(Deadline.after(RETRY_SECONDS)) as connection,
            ):
                # Stored and gone in one transaction: however often it is tried, the record is stored once.
                if not dead_letters.drop(connection, letter.id):
                    raise ConfigError(f"dead letter {letter.id} was stored or deleted meanwhile")
                engine.writer.store(connection, f"letter:{letter.id}", items)
                _audit(connection, home, "retry", letter)
        except DatabaseRejected as error:
            reason = str(error)
    if json:
        terminal.as_json({"id": letter.id, "stored": not reason, "refused_again": bool(reason)})
    elif reason:
        terminal.bullet(
            "problem",
            f"record {letter.id} was rejected again: {reason}",
            f"hermes-pgvector journal dead show {letter.id}",
        )
    else:
        terminal.bullet("ok", f"record {letter.id} is stored and no longer a dead letter")
    return 1 if reason else 0


def _drop(home: Path, letter_id: int, *, execute: bool, json: bool) -> int:
    from hermes_memory_pgvector.store import dead_letters

    letter, _ = _find(home, letter_id)
    if execute:
        with (
            parts.open_pool(home, load(home).settings) as pool,
            pool.transaction(Deadline.after(READ_SECONDS)) as connection,
        ):
            if dead_letters.drop(connection, letter.id):
                _audit(connection, home, "drop", letter)
    if json:
        terminal.as_json({**_document(letter), "dropped": execute, "executed": execute})
    elif execute:
        terminal.bullet("ok", f"record {letter.id} deleted")
    else:
        terminal.bullet(
            "note",
            f"would delete record {letter.id} ({terminal.size(letter.size)}, {letter.reason})",
            f"to do it: hermes-pgvector journal dead drop {letter.id} --execute",
        )
    return 0


def _audit(connection: Connection, home: Path, action: str, letter: DeadLetter) -> None:
    from hermes_memory_pgvector.care import actor, audit

    audit.record(
        connection,
        actor.operator(home),
        f"journal dead {action}",
        subject=f"dead letter {letter.id}",
        counts={"records": 1},
    )


def _find(home: Path, letter_id: int) -> tuple[DeadLetter, bytes]:
    from hermes_memory_pgvector.store import dead_letters

    with (
        parts.open_pool(home, load(home).settings) as pool,
        pool.transaction(Deadline.after(READ_SECONDS)) as connection,
    ):
        found = dead_letters.find(connection, letter_id)
    if found is None:
        raise ConfigError(f"there is no dead letter {letter_id}; see: hermes-pgvector journal dead list")
    return found


def _items(payload: bytes, *, with_content: bool) -> list[dict[str, Any]]:
    """The items of a record; their texts only when asked for."""
    from hermes_memory_pgvector.journal import codec

    try:
        items = codec.decode(payload)
    except ValueError:
        shown: dict[str, Any] = {"kind": "unreadable", "bytes": len(payload)}
        return [{**shown, "content": payload.decode("utf-8", "replace")} if with_content else shown]
    rows = []
    for item in items:
        content = getattr(item, "content", "") or getattr(item, "task", "")
        row: dict[str, Any] = {"kind": type(item).__name__, "theme": item.theme, "characters": len(content)}
        rows.append({**row, "content": content} if with_content else row)
    return rows


def _document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "writer": letter.writer,
        "position": letter.position,
        "bytes": letter.size,
        "reason": letter.reason,
        "at": letter.at,
    }
