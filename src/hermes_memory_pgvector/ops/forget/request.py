"""One request to forget: from the database, the journals and the host's two files, and nothing of it comes back.

What waits is stored first. Then one transaction, beside which nothing is stored: rows are found and deleted by number,
marks keep what was said before from coming back, entries leave MEMORY.md and USER.md, and a receipt says how much there
was and what is left. Whoever is killed before its end has forgotten nothing, and runs it again. Once that is committed,
the homes remember it for backups that are put back; what is missing there, the next one adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.config.home import home_id, pseudonym_key
from hermes_memory_pgvector.errors import CareError, ConfigError, UsageError
from hermes_memory_pgvector.mirror.edit_file import Standing
from hermes_memory_pgvector.ops import audit, belonging, known_themes
from hermes_memory_pgvector.ops.forget import bars, drain, host, rows, stored
from hermes_memory_pgvector.ops.forget.host import HostText
from hermes_memory_pgvector.ops.forget.named import Named, Needle
from hermes_memory_pgvector.ops.forget.rows import Findings
from hermes_memory_pgvector.ops.memory import Memory, NamedRow
from hermes_memory_pgvector.postgres import buckets
from hermes_memory_pgvector.postgres.pool import Connection
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import gate, marks, receipts
from hermes_memory_pgvector.store.gate import Gate, theme_names
from hermes_memory_pgvector.store.marks import Marker
from hermes_memory_pgvector.store.receipts import Receipt
from hermes_memory_pgvector.terminal.amounts import count as counted
from hermes_memory_pgvector.terminal.operation import Note, Plan, command
from hermes_memory_pgvector.terminal.parse import RecordName
from hermes_memory_pgvector.terminal.progress import Bar
from hermes_memory_pgvector.text.names import session_name
from hermes_memory_pgvector.values import is_private_theme


@dataclass(frozen=True, slots=True)
class Forgetting(Plan):
    """What is forgotten; the receipt's number proves it."""

    receipt: int | None = None
    files: tuple[str, ...] = ()
    """The entries that leave MEMORY.md and USER.md: path and line."""
    host_messages: int = 0
    """In the host's own store, which is not ours."""


def named_by(
    memory: Memory, ids: Sequence[RecordName], theme: str | None, session: str | None, user: str | None,
    match: str | None, before: datetime | None,
) -> list[Named]:  # fmt: skip
    """What the options of `forget` name; a person is a theme, and whatever they said elsewhere."""
    if ids and (session or user or match or before):
        raise UsageError("m12, t34, e5 and d3 name rows by themselves: leave the other options out")
    if user and theme:
        raise UsageError("--user names a theme by itself; leave --theme out")
    base = Named(
        theme, None if session is None else session_name(session), before, None if match is None else Needle(match),
        ids=tuple(ids),
    )  # fmt: skip
    return [base] if user is None else list(_person(memory, user, base))


def _person(memory: Memory, who: str, base: Named) -> Iterator[Named]:
    """The theme of somebody's direct chat or room, and what they said in rooms that name the speaker."""
    given = who.strip().casefold()
    if is_private_theme(given):
        yield replace(base, theme=given)
        return
    # A new key would name nobody, and nothing would be found.
    key = pseudonym_key(memory.home, may_begin=False)
    theme = identity.theme_of(given, memory.parsed.settings, lambda: key).theme
    if not is_private_theme(theme):
        raise ConfigError(
            f"{who!r} is neither a pseudonym (dm-…, group-…) nor a key of a messaging platform, such as "
            "agent:main:whatsapp:dm:4915112345678; for a theme use --theme, for a name --match"
        )
    yield replace(base, theme=theme)
    last = given.rpartition(":")[2]
    names = [name for name in dict.fromkeys((given, last, last.lstrip("+"))) if name]
    people = (identity.person(name, key) for name in names)
    yield replace(base, authors=tuple(dict.fromkeys(each for each in (*names, *people) if each)))


@dataclass(slots=True)
class Request:
    """One request to forget."""

    memory: Memory
    named: Sequence[Named]
    options: Sequence[str]
    bar: Bar
    now: datetime = datetime.min
    """What was said later is new."""

    def run(self, *, execute: bool) -> Forgetting:
        """Look, or do it."""
        homes, waiting = belonging.sharing(self.memory.home), 0
        left, aside = [], list(host.former(homes))
        if execute:
            with self.memory.reading() as connection:
                told = bars.lines(connection)
            # An earlier one may have been killed before it could; this one may find nothing, and end here.
            bars.keep(homes, told)
            self.bar.part("storing what waits in journals")
            left = [*drain.drain(homes), *aside]
        self.bar.part("waiting for writers" if execute else "")
        with self.memory.rewriting(execute=execute) as connection:
            self.bar.part("looking for it")
            self.now, opened = datetime.now(UTC), gate.look(connection)
            if not execute:
                waiting = drain.waiting(connection, homes)
            self._check_themes(connection, opened, is_sure=not waiting)
            found = rows.find(connection, self.named, opened)
            standing = host.meant(connection, homes, self.named, found)
            messages = host.messages(homes, self._is_in_message)
            counts = found.counts() | {"entries": sum(map(len, standing.values()))}
            notes = [*_notes(standing, messages, is_done=execute), *self._elsewhere(connection, homes)]
            receipt = None
            if execute:
                self.bar.part("erasing")
                rows.erase(connection, found, self.named)
                made = self._marks(connection, opened, found, messages)
                receipt = self._finish(connection, made, counts, [*left, *notes])
                host.take_out(connection, standing)
                told = bars.lines(connection)
            else:
                # What a recall notes meanwhile is no other request.
                counts["questions"] = 0
                notes += aside
        if waiting:
            text = f"{counted(waiting, 'record')} still in journals: stored first, and forgotten where meant"
            notes.append(Note("note", text))
        if receipt is not None:
            left += bars.keep(homes, told)
            notes.append(
                Note("note", f"receipt {receipt}; to prove it", then=command("forget", "--verify", str(receipt)))
            )
        samples = [] if execute else [NamedRow(each.name, each.theme, each.content) for each in found.samples]
        return Forgetting(
            "forget", "forgotten", {name: count for name, count in counts.items() if count}, samples, execute, notes,
            left, receipt=receipt, files=tuple(each.place for told in standing.values() for each in told),
            host_messages=len(messages),
        )  # fmt: skip

    def _check_themes(self, connection: Connection, opened: Gate, *, is_sure: bool) -> None:
        """CareError for a theme of which nothing is there, with those spelled like it."""

        for theme in {each.theme for each in self.named if each.theme is not None and "user" not in self.options}:
            moved = opened.aliases.get(theme)
            if moved is not None:
                raise CareError(f"theme {theme!r} was merged into {moved!r}; name that one")
            rejected = (item.theme for _, _, items in stored.letters(connection) for item in items or ())
            if is_sure and theme not in rejected:
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
        self, connection: Connection, made: Mapping[bytes, datetime], counts: Mapping[str, int], left: Sequence[Note]
    ) -> int:
        """Set the marks, write the receipt and the audit row; return the receipt's number."""
        actor, number = self.memory.actor, receipts.number(connection)
        for _ in buckets.within(connection):
            marks.insert(connection, number, made)
        told = {name: count for name, count in counts.items() if count}
        sentences = [f"{each.text} ({each.hint})" if each.hint else each.text for each in left]
        receipts.insert(
            connection, Receipt(number, self.now, actor.name, actor.home_id, tuple(self.options), told, sentences)
        )
        themes = {each.theme or "" for each in self.named}
        audit.record(
            connection, actor, "forget", theme=themes.pop() if len(themes) == 1 else "", subject=f"receipt {number}",
            counts=told,
        )  # fmt: skip
        return number

    def _marks(
        self, connection: Connection, opened: Gate, found: Findings, messages: Sequence[HostText]
    ) -> dict[bytes, datetime]:
        marker = Marker(marks.key(connection))
        made: dict[bytes, datetime] = {}

        def bar(mark: bytes, named: Named) -> None:
            made[mark] = max(named.until(self.now), made.get(mark, datetime.min.replace(tzinfo=UTC)))

        for each in self.named:
            names: Iterable[str] = {*theme_names(connection), *found.themes}
            if each.theme is not None:
                names = marks.names_of(each.theme, opened.aliases)
            for mark in each.places(marker, sorted(names)):
                bar(mark, each)
            for message in messages if each.needle is not None else ():
                bar(marker.of_words(each.theme or "", message.text), each)
        for (theme, text), named in found.texts.items():
            bar(marker.of_words("" if named.is_everywhere and named.theme is None else theme, text), named)
        return made

    def _elsewhere(self, connection: Connection, homes: Sequence[Path]) -> Iterator[Note]:
        """The homes whose files are on other machines, or belong to somebody else."""

        here = {home_id(home) for home in homes}
        homes_told = [told for _ in buckets.within(connection) for told in run(connection, "forget/homes").fetchall()]
        # The last word of each counts, in whichever bucket.
        for name, at in sorted(dict(sorted(homes_told)).items()):
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
        yield Note(
            "warning", f"{counted(count, 'message')} of session {session} in hermes' own state.db, which is not ours",
            f"to delete them: hermes sessions delete {session}",
        )  # fmt: skip
