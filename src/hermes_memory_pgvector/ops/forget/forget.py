"""`forget`: what is named goes for good, from the database, the journals and the host's two files, and stays out.

What waits is stored first. Then one transaction, beside which nothing is stored: rows are found and deleted by number,
marks keep what was said before from coming back, entries leave MEMORY.md and USER.md, and a receipt says how much there
was and what is left. Whoever is killed before its end has forgotten nothing, and runs it again. Once that is committed,
the homes remember it for backups that are put back; what is missing there, the next one adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector.errors import CareError, UsageError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import parse
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, Plan, column, command
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.mirror.edit_file import Standing
    from hermes_memory_pgvector.ops.forget.host import HostText
    from hermes_memory_pgvector.ops.forget.named import Named
    from hermes_memory_pgvector.ops.forget.rows import Findings
    from hermes_memory_pgvector.postgres.pool import Connection
    from hermes_memory_pgvector.store.gate import Gate

SECONDS: Final = 6 * 3600.0
GATE_SECONDS: Final = 70.0
"""A little longer than a writer's batch may take."""


@dataclass(frozen=True, slots=True)
class ForgottenRow:
    """A row that is forgotten."""

    id: str = column("id")
    agent_identity: str = column("theme")
    content: str = column("text", text=True)


@dataclass(frozen=True, slots=True)
class Forgetting(Plan):
    """What is forgotten; the receipt's number proves it."""

    receipt: int | None = None
    files: tuple[str, ...] = ()
    """The entries that leave MEMORY.md and USER.md: path and line."""
    host_messages: int = 0
    """In the host's own store, which is not ours."""


def forget(
    memory: Memory,
    *,
    ids: Sequence[RecordName],
    theme: str | None,
    session: str | None,
    user: str | None,
    match: str | None,
    before: datetime | None,
    expired: bool,
    secrets: bool,
    verify: int | None,
    execute: bool,
) -> Plan | Facts:
    """Say what would be forgotten, forget it, or prove that it is."""
    from hermes_memory_pgvector.ops.forget import expired as expiring
    from hermes_memory_pgvector.ops.forget import masking, verification
    from hermes_memory_pgvector.ops.forget.asked import named_by

    given = {"ids": bool(ids), "session": session, "user": user, "match": match, "before": before}
    others = [name for name, value in given.items() if value]
    theme = None if theme is None else theme_name(theme)
    modes = [expired, secrets, verify is not None]
    if sum(modes) > 1 or (any(modes) and [name for name in others if not (verify and name == "match")]):
        raise UsageError("--expired, --secrets and --verify say by themselves what is meant")
    if verify is not None:
        if execute:
            raise UsageError("--verify only looks")
        return verification.verify(memory, verify, match, theme)
    if expired:
        return expiring.run(memory, theme, execute=execute)
    if secrets:
        return masking.run(memory, theme, execute=execute)
    if not others and theme is None:
        raise UsageError(
            "say what to forget: m12, --theme, --session, --user, --match, --before, --expired or --secrets"
        )
    named = named_by(memory, ids, theme, session, user, match, before)
    return _Request(memory, named, ([] if theme is None else ["theme"]) + others).run(execute=execute)


@dataclass(slots=True)
class _Request:
    """One request to forget."""

    memory: Memory
    named: Sequence[Named]
    options: Sequence[str]
    now: datetime = datetime.min
    """What was said later is new."""

    def run(self, *, execute: bool) -> Forgetting:
        """Look, or do it."""
        from hermes_memory_pgvector.ops.forget import bars, drain, host, rows
        from hermes_memory_pgvector.store import gate, schema

        with self.memory.reading() as connection:
            schema.verify(connection)
            told = bars.lines(connection) if execute else []
        homes = drain.database_homes(self.memory.home)
        left, aside = [], list(host.former(homes))
        if execute:
            # An earlier one may have been killed before it could; this one may find nothing, and end here.
            bars.keep(homes, told)
            left = [*drain.drain(homes), *aside]
        with self._transaction() as connection:
            if execute:
                gate.close(connection)
            self.now, opened = datetime.now(UTC), gate.look(connection)
            waiting = [] if execute else self._waiting(connection, homes)
            self._check_themes(connection, opened, {item.theme for item in waiting})
            found = rows.find(connection, self.named, opened)
            standing = host.meant(connection, homes, self.named, found)
            messages = host.messages(homes, self._is_in_message)
            counts = found.counts() | {"entries": sum(map(len, standing.values()))}
            if execute:
                rows.erase(connection, found, self.named)
            else:
                # What a recall notes meanwhile is no other request.
                counts |= {"questions": 0, "waiting": sum(self._covers(item, opened) for item in waiting)}
            notes = [*_notes(standing, messages, is_done=execute), *self._elsewhere(connection, homes)]
            notes += [] if execute else aside
            receipt = None
            if execute:
                receipt = self._finish(connection, opened, found, messages, counts, [*left, *notes])
                host.take_out(standing)
                told = bars.lines(connection)
        if receipt is not None:
            left += bars.keep(homes, told)
            notes.append(
                Note("note", f"receipt {receipt}; to prove it", then=command("forget", "--verify", str(receipt)))
            )
        return Forgetting(
            "forget", "forgotten", {name: count for name, count in counts.items() if count},
            [] if execute else [ForgottenRow(*each) for each in found.samples], execute, notes, left, receipt=receipt,
            files=tuple(each.place for told in standing.values() for each in told), host_messages=len(messages),
        )  # fmt: skip

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        from hermes_memory_pgvector.deadline import Deadline

        with (
            self.memory.pool() as pool,
            pool.transaction(Deadline.after(SECONDS), lock_seconds=GATE_SECONDS, pause_seconds=SECONDS) as connection,
        ):
            yield connection

    def _covers(self, item: Any, opened: Gate) -> bool:
        told = opened.renamed(item)
        return any(each.covers(told) for each in self.named)

    def _waiting(self, connection: Connection, homes: Sequence[Path]) -> list[Any]:
        from hermes_memory_pgvector.ops import journals
        from hermes_memory_pgvector.ops.forget import drain
        from hermes_memory_pgvector.store import watermarks

        found = []
        for home in homes:
            found += list(drain.waiting(home, watermarks.read(connection, journals.writers(home))))
        return found

    def _check_themes(self, connection: Connection, opened: Gate, waiting: set[str]) -> None:
        """CareError for a theme of which nothing is there, with those spelled like it."""
        from hermes_memory_pgvector.ops import known_themes
        from hermes_memory_pgvector.ops.forget import rows
        from hermes_memory_pgvector.postgres.statements import statement

        if "user" in self.options:
            return
        for theme in {each.theme for each in self.named if each.theme is not None and each.theme not in waiting}:
            moved = opened.aliases.get(theme)
            if moved is not None:
                raise CareError(f"theme {theme!r} was merged into {moved!r}; name that one")
            letters: list[Any] = connection.execute(statement("forget/letters")).fetchall()
            if not any(item.theme == theme for _, raw in letters for item in rows.decoded(bytes(raw)) or ()):
                known_themes.require(connection, theme)

    def _is_in_message(self, session: str, text: str) -> bool:
        for each in self.named:
            if each.needle is not None and each.session_id in (None, session) and not each.authors:
                if each.needle.is_in(text):
                    return True
            elif each.session_id == session and each.is_place:
                return True
        return False

    def _finish(
        self,
        connection: Connection,
        opened: Gate,
        found: Findings,
        messages: Sequence[HostText],
        counts: Mapping[str, int],
        left: Sequence[Note],
    ) -> int:
        """Set the marks, write the receipt and the audit row; return the receipt's number."""
        from hermes_memory_pgvector.ops import audit
        from hermes_memory_pgvector.store import marks, receipts
        from hermes_memory_pgvector.store.receipts import Receipt

        actor = self.memory.actor
        made = self._marks(connection, opened, found, messages)
        number = receipts.number(connection)
        marks.insert(connection, number, made)
        told = {name: count for name, count in counts.items() if count}
        sentences = [f"{each.text} ({each.hint})" if each.hint else each.text for each in left]
        receipts.insert(
            connection, Receipt(number, self.now, actor.name, actor.home_id, tuple(self.options), told, sentences)
        )
        themes = {each.theme for each in self.named}
        audit.record(
            connection, actor, "forget", theme=(themes.pop() or "") if len(themes) == 1 else "",
            subject=f"receipt {number}", counts=told,
        )  # fmt: skip
        return number

    def _marks(
        self, connection: Connection, opened: Gate, found: Findings, messages: Sequence[HostText]
    ) -> dict[bytes, datetime]:
        from hermes_memory_pgvector.store import marks
        from hermes_memory_pgvector.store.marks import Marker
        from hermes_memory_pgvector.store.themes import theme_names

        marker = Marker(marks.key(connection))
        made: dict[bytes, datetime] = {}

        def bar(mark: bytes, named: Named) -> None:
            made[mark] = max(named.until(self.now), made.get(mark, datetime.min.replace(tzinfo=UTC)))

        for each in self.named:
            names = theme_names(connection) if each.theme is None else marks.names_of(each.theme, opened.aliases)
            names = [*dict.fromkeys((*names, *found.themes))] if each.theme is None else names
            for mark in each.places(marker, names):
                bar(mark, each)
            if each.needle is not None:
                for message in messages:
                    bar(marker.of_words(each.theme or "", message.text), each)
        for (theme, text), named in found.texts.items():
            bar(marker.of_words("" if named.is_everywhere and named.theme is None else theme, text), named)
        for theme, _ in {*found.gone, *found.events}:
            made[marker.of_history(theme)] = self.now
        return made

    def _elsewhere(self, connection: Connection, homes: Sequence[Path]) -> Iterator[Note]:
        """The homes whose files are on other machines, or belong to somebody else."""
        from hermes_memory_pgvector.config.home import home_id
        from hermes_memory_pgvector.postgres.statements import statement

        here = {home_id(home) for home in homes}
        rows: list[Any] = connection.execute(statement("forget/homes")).fetchall()
        for name, at in rows:
            if name not in here:
                heard = "" if at is None else f" (last heard of {at:%Y-%m-%d})"
                yield Note(
                    "note", f"home {name}{heard}: what it still sends of this is not stored",
                    "its MEMORY.md, USER.md and state.db are for its owner to look at",
                )  # fmt: skip


def _notes(
    standing: Mapping[Path, Sequence[Standing]], messages: Sequence[HostText], *, is_done: bool
) -> Iterator[Note]:
    for told in standing.values():
        for each in told:
            gone = "the entry was taken out" if is_done else "this entry would be taken out"
            yield Note("note", f"{each.place}: {gone}")
    sessions = Counter(each.session_id for each in messages)
    for session, count in sorted(sessions.items()):
        held = "1 message" if count == 1 else f"{count} messages"
        yield Note(
            "warning", f"{held} of session {session} in hermes' own state.db: they are not ours, and stay",
            f"to delete them: hermes sessions delete {session}",
        )  # fmt: skip


def record(text: str) -> RecordName:
    """The name of anything that can be forgotten."""
    found = parse.record_name(text)
    if found is None:
        raise UsageError(f"{text!r} names nothing: m12 is a memory, t34 a turn, e5 an event, d3 a rejected record")
    return found


FORGET: Final = Operation(
    "forget",
    "erase for good what you name, keep it out, and leave a receipt",
    (
        Option("ids", "m12 a memory, t34 a turn, e5 an event, d3 a rejected record", record, many=True, metavar="ID"),
        Option("--theme", "everything of a theme; with other options only in it", parse.filled, metavar="THEME"),
        Option("--session", "everything of a conversation", parse.filled, metavar="ID"),
        Option("--user", "a person or room: dm-…, group-…, or a platform key", parse.filled, metavar="KEY"),
        Option("--match", "whatever holds this text, however it is written", parse.filled, metavar="TEXT"),
        Option("--before", f"only what is older: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--expired", "what is older than the setting ttl_days keeps it", is_flag=True),
        Option("--secrets", "mask keys, tokens and passwords that are stored", is_flag=True),
        Option("--verify", "search for what is left of it; with --match for the text, too", parse.positive,
               metavar="RECEIPT", on_page=False),
    ),
    forget,
    (
        ("forget --match 'Anna Schmidt'", "whatever holds this name: a dry run"),
        ("forget m12 t34 --execute", "one memory and one turn, for good"),
        ("forget --theme trading --execute", "everything of a theme"),
        ("forget --user agent:main:whatsapp:dm:4915112345678", "a person, also in rooms that name the speaker"),
        ("forget --verify 3 --match 'Anna Schmidt'", "prove that receipt 3 left nothing"),
        ("forget --expired --execute", "what ttl_days no longer keeps"),
    ),
    group="erase",
    changes=True,
    aliases={"prune": {"expired": True}, "cleanup": {}, "scan": {"secrets": True}},
    rows=(ForgottenRow,),
)  # fmt: skip
