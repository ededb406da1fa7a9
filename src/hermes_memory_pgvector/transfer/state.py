"""`import state`: the past that a host keeps in its state.db, as the turns that live traffic would have stored.

Sessions are read one after the other, parents before those that go on from them. Of each message only digests are kept
until it is known that it is not stored yet; then its text is read a second time. So memory does not grow with the
store, and a second run writes nothing.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hermes_memory_pgvector.capture import host_store
from hermes_memory_pgvector.capture.host_store import HostMessage, HostSession, HostStore
from hermes_memory_pgvector.capture.memory_events import delegation
from hermes_memory_pgvector.capture.provenance import Judge, Seen
from hermes_memory_pgvector.capture.scaffolding import typed_by_user
from hermes_memory_pgvector.capture.transcript import is_host_text, is_noise, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.postgres.pool import Pool
from hermes_memory_pgvector.store import gate, overview, turns
from hermes_memory_pgvector.text.clean import text_of, turn_digest
from hermes_memory_pgvector.text.names import session_name
from hermes_memory_pgvector.transfer.intake import TurnIntake, storing
from hermes_memory_pgvector.transfer.matching import StoredKey, missing
from hermes_memory_pgvector.transfer.own_words import Line, Origin, Past, Said, own_words
from hermes_memory_pgvector.transfer.state_themes import SessionTheme, ThemeRules
from hermes_memory_pgvector.transfer.tally import Tally
from hermes_memory_pgvector.values import AddTurn, Moment, RecordDelegation, RowOrigin, Session

WAIT_SECONDS = 15.0
READ_SECONDS = 60.0
GROUP_LINES = 2000
"""About so many messages are compared with the database at once."""
GROUP_SESSIONS = 100
UNANSWERED_SECONDS = 6 * 3600.0
"""For so long an agent may still be working on its answer, which live traffic then stores with the question."""
JUST_ANSWERED_SECONDS = 300.0
_LATEST_SECONDS = 4_102_444_800.0
"""No message is from after the year 2100: such a time is a damaged one."""
_REVIEW_PROMPTS = (
    "Review the conversation above and update the skill library",
    "Review the conversation above and consider saving to memory",
)
"""What some hosts said to themselves in the middle of a session."""

TOO_SHORT = "too short to be worth keeping"
UNDONE = "taken back with /undo"
COPIED = "copies made by branches and compression"
NOT_A_CHAT = "of cron jobs and subagents"
UNKNOWN_PARTNER = "of chats whose partner the host did not record"
SHARED_ID = "of API sessions that several themes share"
UNNAMED_API = "of API sessions whose key hermes did not record: name their theme with --api-theme"
UNFINISHED = "still being answered: import again later"
BEFORE_SINCE = "older than --since"


@dataclass(frozen=True, slots=True)
class Source:
    """A host's store and what decides the themes of its sessions."""

    path: Path
    rules: ThemeRules
    since: float = 0.0
    home_id: str = ""
    """The home whose chats these are."""


@dataclass(frozen=True, slots=True)
class _Delegation:
    """A subagent's work, as its own session shows it."""

    task: str
    result: str
    child_id: str
    at: float


@dataclass(slots=True)
class _Part:
    """What one session contributes."""

    session: HostSession
    theme: SessionTheme
    told: str
    """The theme's name then; it may have another one by now."""
    said: list[Said]
    delegations: list[_Delegation] = field(default_factory=list)
    is_shared: bool = False
    """Whether chats of several themes may stand in it."""

    @property
    def name(self) -> str:
        return session_name(self.session.id)


def size(path: Path) -> tuple[int, int]:
    """How many messages a store holds, and in how many sessions."""
    with host_store.reading(path, wait_seconds=WAIT_SECONDS) as store:
        return store.size()


def import_state(
    source: Source,
    pool: Pool,
    settings: Settings,
    *,
    is_dry: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> Tally:
    """Store what is not stored yet; `progress` learns how many messages have been dealt with."""
    tally = Tally()
    with (
        storing(pool, is_dry=is_dry) as transaction,
        host_store.reading(source.path, wait_seconds=WAIT_SECONDS) as store,
    ):
        intake = TurnIntake(transaction, settings, tally)
        work = _Import(source, store, pool, settings, tally, intake, progress)
        work.run()
    return tally


class _Import:
    def __init__(
        self,
        source: Source,
        store: HostStore,
        pool: Pool,
        settings: Settings,
        tally: Tally,
        intake: TurnIntake,
        progress: Callable[[int], None],
    ) -> None:
        self._source = source
        self._store = store
        self._pool = pool
        self._settings = settings
        self._tally = tally
        self._intake = intake
        self._progress = progress
        self._sessions: dict[str, HostSession] = {}
        self._pasts: dict[str, Past] = {}
        self._subagents: dict[str, list[str]] = {}
        self._shared: set[str] = set()
        """Sessions in which chats of several themes may stand."""
        self._possible: list[str] = []
        """Themes that have rows, and that this home's API sessions may have."""
        self._aliases: Mapping[str, str] = {}
        """Themes that have another name by now."""

    def run(self) -> None:
        with self._pool.transaction(Deadline.after(READ_SECONDS)) as connection:
            themes = overview.theme_names(connection)
            self._aliases = self._intake.aliases = gate.look(connection).aliases
        may_name = self._source.rules.may_name
        renamed = {new for old, new in self._aliases.items() if may_name(old)}
        self._possible = [theme for theme in themes if theme in renamed or may_name(theme)]
        listed = self._store.sessions()
        self._sessions = {session.id: session for session in listed}
        for session in listed:
            if session.parent_id and not self._is_chat(session):
                self._subagents.setdefault(session.parent_id, []).append(session.id)
        goes_on = Counter(session.parent_id for session in listed if self._origin(session) is not Origin.NEW)
        group: list[_Part] = []
        lines = 0
        for session in _parents_first(listed, self._sessions):
            part, read = self._read(session, keeps_past=goes_on[session.id] > 0)
            if self._origin(session) is not Origin.NEW:
                goes_on[session.parent_id] -= 1
                if not goes_on[session.parent_id]:
                    # A damaged store may name a session as the parent of its own parent: that one comes later.
                    self._pasts.pop(session.parent_id, None)
            self._progress(read)
            if part is not None:
                group.append(part)
                lines += len(part.said)
            if lines >= GROUP_LINES or len(group) >= GROUP_SESSIONS:
                self._take(group)
                group, lines = [], 0
        self._take(group)
        self._intake.flush()

    def _origin(self, session: HostSession) -> Origin:
        parent = self._sessions.get(session.parent_id)
        if parent is None:
            return Origin.NEW
        if session.branched_from or parent.end_reason == "branched":
            return Origin.BRANCH
        return Origin.COMPRESSION if parent.end_reason == "compression" else Origin.NEW

    def _is_chat(self, session: HostSession) -> bool:
        """Whether the host lets a memory provider take part: not in cron jobs, curators and subagents."""
        if session.delegated_from or session.source in ("cron", "curator", "subagent"):
            return False
        return session.parent_id not in self._sessions or self._origin(session) is not Origin.NEW

    def _read(self, session: HostSession, *, keeps_past: bool) -> tuple[_Part | None, int]:
        """What a session contributes, and how many messages it has."""
        lines: list[Line] = []
        count = 0
        judge, seen = Judge(self._settings, session.source), Seen()
        for message in _without_reviews(self._store.messages(session.id)):
            count += message.role in ("user", "assistant")
            judge.read(_as_told(message), seen)
            line = self._line(message, session, judge, seen)
            if line is not None:
                lines.append(line)
        said, past = own_words(lines, self._origin(session), self._pasts.get(session.parent_id, Past()))
        if keeps_past:
            self._pasts[session.id] = past
        left_out = self._tally.left_out
        if not self._is_chat(session):
            left_out[NOT_A_CHAT] += len(said)
            return None, count
        theme = self._source.rules.theme_of(session, self._sessions)
        if theme.theme is None:
            left_out[UNKNOWN_PARTNER] += len(said)
            return None, count
        told = theme.theme
        theme = replace(theme, theme=self._aliases.get(told, told))
        left_out[UNDONE] += sum(line.is_rewound for line in lines)
        left_out[COPIED] += sum(bool(line.digests) and not line.is_rewound for line in lines) - len(said)
        if _begins_again(lines) or session.parent_id in self._shared:
            self._shared.add(session.id)
        is_shared = session.id in self._shared
        return _Part(session, theme, told, self._wanted(session, said), self._delegated(session), is_shared), count

    def _wanted(self, session: HostSession, said: list[Said]) -> list[Said]:
        left_out = self._tally.left_out
        settled = _settled(said, session, self._settings.turn_retry_window, time.time())
        left_out[UNFINISHED] += len(said) - len(settled)
        since_us = int(self._source.since * 1e6)
        recent = [each for each in settled if each.line.at_us >= since_us]
        left_out[BEFORE_SINCE] += len(settled) - len(recent)
        wanted = [each for each in recent if not each.line.is_noise]
        left_out[TOO_SHORT] += len(recent) - len(wanted)
        return wanted

    def _line(self, message: HostMessage, session: HostSession, judge: Judge, seen: Seen) -> Line | None:
        role = _spoken(message)
        if role is None:
            return None
        at_us = int((message.at if 0 < message.at < _LATEST_SECONDS else session.started_at) * 1e6)
        if is_host_text({"content": message.content}):
            return Line(message.id, role, (), at_us, is_note=True, is_hidden=message.is_hidden)
        forms = self._forms(role, message)
        told = judge.of_user(forms[0] if forms else "") if role == "user" else seen.judgement()
        return Line(
            message.id,
            role,
            tuple(turn_digest(role, form) for form in forms),
            at_us,
            is_rewound=message.is_rewound,
            is_hidden=message.is_hidden,
            is_noise=not forms or is_noise(forms[0], self._settings.turn_min_chars),
            trust=told.trust,
            tools=told.tools,
        )

    def _forms(self, role: Literal["user", "assistant"], message: HostMessage) -> list[str]:
        """A message's content in each form it may be stored, the usual one first."""
        made = (
            turn_of(role, form, self._settings.turn_max_chars)
            for form in host_store.wordings(role, message.content, typed_by_user)
        )
        return [turn.content for turn in made if turn is not None]

    def _delegated(self, session: HostSession) -> list[_Delegation]:
        """The work of a session's subagents: what each was asked first, and what it said last."""
        found = []
        for child in self._subagents.get(session.id, ()):
            task: Any = None
            result: Any = None
            at = 0.0
            for message in self._store.messages(child):
                if message.role == "user" and task is None:
                    task = message.content
                elif message.role == "assistant" and not message.tool_calls:
                    result, at = message.content, message.at
            if task is not None and result is not None and at >= self._source.since:
                found.append(_Delegation(text_of(task), text_of(result), child, at))
        return found

    def _take(self, group: Sequence[_Part]) -> None:
        """Compare some sessions with the database, and store what it does not have."""
        if not group:
            return
        stored = self._stored(group)
        for part in group:
            theme = part.theme.theme or ""
            if part.theme.is_guess:
                places = {each: stored.get((each, part.name), []) for each in self._candidates(part)}
                known = {each: rows for each, rows in places.items() if _is_same_chat(part.said, rows)}
                says = {theme} if part.theme.is_told else set()
                if part.is_shared or len(says | known.keys()) > 1:
                    # The host gives requests of several themes one session id: which said what, nobody knows.
                    left = missing(part.said, [row for each in places.values() for row in each])
                    self._tally.left_out[SHARED_ID] += len(left)
                    continue
                if not known and part.theme.is_unnamed:
                    self._tally.left_out[UNNAMED_API] += len(part.said)
                    continue
                theme = next(iter(known), theme)
            self._store_part(part, theme, stored.get((theme, part.name), []))

    def _store_part(self, part: _Part, theme: str, stored: Sequence[StoredKey]) -> None:
        parent = session_name(part.session.parent_id)
        # What was forgotten under the name it was said under stays forgotten.
        said_in = part.told if self._aliases.get(part.told) == theme else theme
        # A session whose parent is gone may begin with messages that the host has copied, and dated anew.
        is_dated = not part.session.parent_id or part.session.parent_id in self._sessions
        new = missing(part.said, stored)
        self._tally.themes[theme].known += len(part.said) - len(new)
        for start in range(0, len(new), host_store.PAGE_ROWS):
            page = {each.line.message_id: each for each in new[start : start + host_store.PAGE_ROWS]}
            for message in self._store.messages_by_id(list(page)):
                each = page[message.id]
                role = each.line.role
                forms = self._forms(role, message)
                if not forms or turn_digest(role, forms[0]) != each.line.key:
                    # The host has changed it meanwhile; the next run sees it as it is then.
                    continue
                when = Moment(each.line.at_us, each.line.at_us)
                metadata: dict[str, Any] = {"platform": part.session.source} if part.session.source else {}
                if each.line.tools:
                    metadata["tools"] = list(each.line.tools)
                self._intake.add(
                    AddTurn(
                        said_in, part.name, role, forms[0], each.ordinal, when, False, parent_session_id=parent,
                        metadata=metadata, home_id=self._source.home_id, origin=RowOrigin.IMPORT,
                        trust=each.line.trust, is_dated=is_dated,
                    )
                )  # fmt: skip
        self._delegate(part, theme, said_in, stored)

    def _delegate(self, part: _Part, theme: str, said_in: str, stored: Sequence[StoredKey]) -> None:
        known = {row.digest for row in stored}
        session = Session(said_in, part.name, said_in, platform=part.session.source)
        home_id = self._source.home_id
        for each in part.delegations:
            when = Moment(int(each.at * 1e6), int(each.at * 1e6))
            for item in delegation(each.task, each.result, each.child_id, session, when, self._settings, home_id):
                if isinstance(item, RecordDelegation):
                    self._intake.add_edge(item)
                elif isinstance(item, AddTurn) and turn_digest(item.role, item.content) in known:
                    self._tally.themes[theme].known += 1
                elif isinstance(item, AddTurn):
                    self._intake.add(item)

    def _stored(self, group: Sequence[_Part]) -> dict[tuple[str, str], list[StoredKey]]:
        found: dict[tuple[str, str], list[StoredKey]] = {}
        themes = sorted({theme for part in group for theme in self._candidates(part)})
        with self._pool.transaction(Deadline.after(READ_SECONDS)) as connection:
            rows = turns.stored_keys(connection, themes, [part.name for part in group])
        for theme, session_id, digest, ordinal, at_us in rows:
            found.setdefault((theme, session_id), []).append(StoredKey(digest, ordinal, at_us))
        return found

    def _candidates(self, part: _Part) -> list[str]:
        """The themes in which a session's turns may be stored."""
        own = part.theme.theme or ""
        return list(dict.fromkeys([own, *self._possible])) if part.theme.is_guess else [own]


def _is_same_chat(said: Sequence[Said], stored: Sequence[StoredKey]) -> bool:
    """Whether stored rows are of these sayings.

    The opening proves nothing: the host makes an API session's id from it, so chats that begin alike have one id.
    """
    opening = next((set(each.line.digests) for each in said if each.line.role == "user"), set())
    digests = {digest for each in said for digest in each.line.digests}
    return any(row.digest in digests and row.digest not in opening for row in stored)


def _begins_again(lines: Sequence[Line]) -> bool:
    """Whether the words a session begins with stand in it again: chats that begin alike have one id at the host."""
    asked = [set(line.digests) for line in lines if line.role == "user" and line.digests]
    return any(asked[0] & again for again in asked[1:])


def _parents_first(listed: Sequence[HostSession], sessions: Mapping[str, HostSession]) -> Iterator[HostSession]:
    done: set[str] = set()
    for session in listed:
        waiting = [session]
        while (parent := sessions.get(waiting[-1].parent_id)) is not None and parent not in waiting:
            waiting.append(parent)
        for each in reversed(waiting):
            if each.id not in done:
                done.add(each.id)
                yield each


def _without_reviews(messages: Iterator[HostMessage]) -> Iterator[HostMessage]:
    """The messages without what some hosts told themselves to do, and the answer to that."""
    is_answer = False
    for message in messages:
        if message.role == "user" and text_of(message.content, 100).startswith(_REVIEW_PROMPTS):
            is_answer = True
        elif is_answer and message.role == "assistant" and not message.tool_calls:
            is_answer = False
        else:
            is_answer = is_answer and message.role != "user"
            yield message


def _as_told(message: HostMessage) -> dict[str, Any]:
    """A stored message as the host shows it in a transcript."""
    try:
        calls = json.loads(message.tool_calls) if message.tool_calls else []
    except (ValueError, RecursionError):
        calls = []
    return {"role": message.role, "content": message.content, "tool_calls": calls}


def _spoken(message: HostMessage) -> Literal["user", "assistant"] | None:
    """Whose words a message holds; None for tool traffic, drafts before tool calls, and talk in the room."""
    if message.is_observed or message.tool_calls:
        return None
    if message.role == "user":
        return "user"
    return "assistant" if message.role == "assistant" else None


def _settled(said: list[Said], session: HostSession, window: float, now: float) -> list[Said]:
    """The sayings without an exchange at the end that live traffic is about to store.

    Live traffic stores both sides of an exchange when it is complete. It knows a row of ours by its words and its time,
    unless the answer took longer than the time within which the same words count as the same.
    """
    if session.ended_at is not None:
        return said
    last = next((place for place in range(len(said) - 1, -1, -1) if said[place].line.role == "user"), None)
    if last is None:
        return said
    asked_at = said[last].line.at_us / 1e6
    answered_at = said[-1].line.at_us / 1e6 if last < len(said) - 1 else None
    if answered_at is None:
        is_open = now - asked_at < UNANSWERED_SECONDS
    else:
        is_open = answered_at - asked_at > window and now - answered_at < JUST_ANSWERED_SECONDS
    return said[:last] if is_open else said
