"""The past that a host keeps in its state.db, as the turns that live traffic would have stored.

Sessions are read one after the other, parents before those that go on from them. A session goes to the theme that live
traffic gives it; one that belongs to several themes, or to none that is certain, is left out and counted.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.capture.host_store import MAX_ANCESTORS, wordings
from hermes_memory_pgvector.capture.memory_events import delegation
from hermes_memory_pgvector.capture.provenance import Judge
from hermes_memory_pgvector.capture.transcript import is_host_text, is_noise, turn_of
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.ops.carry.intake import Found, RowIntake
from hermes_memory_pgvector.ops.carry.said import Line, SaidBefore, own_words
from hermes_memory_pgvector.ops.host_past import HostPast, PastMessage, PastSession
from hermes_memory_pgvector.postgres.statements import run
from hermes_memory_pgvector.store import gate
from hermes_memory_pgvector.text.clean import text_of, turn_digest
from hermes_memory_pgvector.text.names import session_name, theme_name
from hermes_memory_pgvector.values import DEFAULT_THEME, AddTurn, Moment, RowOrigin, Session, is_private_theme

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
API_SOURCE = "api_server"
CRON = "cron"
_LOCAL_SOURCES = frozenset({"", "acp", "cli", CRON, "desktop", "gui", "local", "tui", "unknown", "web"})
"""Where the speaker is whoever owns the home, or has set up the job."""
_WORKSPACE = "hermes"
"""What the host calls the workspace of the default profile."""

TOO_SHORT = "too short to be worth keeping"
UNDONE = "taken back with /undo"
COPIED = "copies made by branches and compression"
NOT_A_CHAT = "of subagents, and of cron jobs that write_contexts leaves out"
UNKNOWN_PARTNER = "of chats whose partner the host did not record"
SHARED_ID = "of API sessions that several themes share"
UNNAMED_API = "of API sessions whose key hermes did not record: name their theme with --theme"
AGAIN = "said again within ten minutes, which is the same turn"
UNFINISHED = "still being answered: import again later"
BEFORE_SINCE = "older than --since"


@dataclass(frozen=True, slots=True)
class ThemeRules:
    """What decides the themes of one home's sessions, as it does for live traffic."""

    settings: Settings
    pseudonym_key: Callable[[], bytes]
    profile: str
    is_profile: Callable[[str], bool]
    home_id: str = ""
    """The home whose chats these are."""
    api_theme: str = ""
    """The theme of API sessions of which nothing tells it, if the operator names one."""
    since: float = 0.0

    def theme(self, key: str, thread_id: str = "") -> str:
        """The theme of a session key; of none, the profile's own."""
        told = {
            "gateway_session_key": key, "thread_id": thread_id, "agent_identity": self.profile,
            "agent_workspace": _WORKSPACE,
        }  # fmt: skip
        return identity.resolve("", told, self.settings, self.pseudonym_key, self.profile, self.is_profile)[0].theme

    def may_name(self, theme: str) -> bool:
        """Whether a request to this home's API may have a theme: where profiles do not share themes, only its own."""
        if self.settings.profile_scope != "separate" or is_private_theme(theme):
            return True
        if self.profile != DEFAULT_THEME:
            return theme.startswith(identity.separate("", self.profile))
        return theme.startswith(f"{DEFAULT_THEME}/") or identity.separate(theme, self.profile, self.is_profile) == theme


@dataclass(slots=True)
class StateImport:
    """One host's store on its way in."""

    past: HostPast
    rules: ThemeRules
    intake: RowIntake
    _sessions: dict[str, PastSession] = field(default_factory=dict)
    _told: dict[str, list[SaidBefore]] = field(default_factory=dict)
    """What was said up to the end of sessions that others go on from."""
    _subagents: dict[str, list[str]] = field(default_factory=dict)
    _shared: set[str] = field(default_factory=set)
    """Sessions in which chats of several themes stand."""
    _aliases: Mapping[str, str] = field(default_factory=dict)
    """Themes that have another name by now."""
    _themes: Sequence[str] = ()
    """Those that hold rows, and that this home's API sessions may have."""

    def run(self) -> None:
        """Store what is not stored yet."""
        with self.intake.transaction() as connection:
            held, self._aliases = gate.theme_names(connection), gate.look(connection).aliases
        renamed = {new for old, new in self._aliases.items() if self.rules.may_name(old)}
        self._themes = [theme for theme in held if theme in renamed or self.rules.may_name(theme)]
        listed = self.past.sessions()
        self._sessions = {session.id: session for session in listed}
        for session in listed:
            if session.parent_id and not self._is_chat(session):
                self._subagents.setdefault(session.parent_id, []).append(session.id)
        continued = {session.parent_id for session in listed if self._goes_on(session)}
        for session in _parents_first(listed, self._sessions):
            told = self._read(session)
            if session.id in continued:
                self._told[session.id] = told

    def _goes_on(self, session: PastSession) -> bool:
        parent = self._sessions.get(session.parent_id)
        return parent is not None and bool(
            session.branched_from or parent.end_reason in ("branched", "compression")
        )  # fmt: skip

    def _is_chat(self, session: PastSession) -> bool:
        """Whether live traffic stores it: not what curators and subagents do, and cron jobs as the operator says."""
        if session.delegated_from or session.source in ("curator", "subagent"):
            return False
        if session.source == CRON and CRON not in self.rules.settings.write_contexts:
            return False
        return session.parent_id not in self._sessions or self._goes_on(session)

    def _read(self, session: PastSession) -> list[SaidBefore]:
        """Take in what a session says; what was said in it and before it."""
        lines, count, judge = [], 0, Judge(self.intake.settings, session.source)
        for message in _without_reviews(self.past.messages(session.id)):
            count += message.role in ("user", "assistant")
            judge.read(_as_told(message))
            line = self._line(message, session, judge)
            if line is not None:
                lines.append(line)
        said, told = own_words(lines, self._told.get(session.parent_id, ()) if self._goes_on(session) else ())
        self.intake.advance(count)
        left_out = self.intake.tally.left_out
        if not self._is_chat(session):
            left_out[NOT_A_CHAT] += len(said)
            return told
        if _begins_again(lines) or session.parent_id in self._shared:
            self._shared.add(session.id)
        theme, why = self._theme(session, said)
        if why:
            left_out[why] += len(said)
            return told
        rewound = sum(line.is_rewound for line in lines)
        left_out[UNDONE] += rewound
        left_out[COPIED] += sum(not line.is_note for line in lines) - rewound - len(said)
        self._take(session, theme, said)
        return told

    def _line(self, message: PastMessage, session: PastSession, judge: Judge) -> Line | None:
        """A message of user or assistant; None for tool traffic, drafts before tool calls, and talk in the room."""
        if message.is_observed or message.tool_calls or message.role not in ("user", "assistant"):
            return None
        role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
        at_us = int((message.at if 0 < message.at < _LATEST_SECONDS else session.started_at) * 1e6)
        if is_host_text({"content": message.content}):
            return Line(message.id, role, "", "", at_us, is_note=True)
        words = next(iter(wordings(role, message.content)), "")
        turn = turn_of(role, words, self.intake.settings.turn_max_chars)
        if turn is None:
            return None
        tools = judge.of_user(turn.content) if role == "user" else judge.tools
        key = turn_digest(role, turn.content)
        return Line(message.id, role, turn.content, key, at_us, False, message.is_rewound, tools)

    def _take(self, session: PastSession, theme: str, said: Sequence[Line]) -> None:
        settings, left_out = self.intake.settings, self.intake.tally.left_out
        settled = _settled(said, session, settings.turn_retry_window, time.time())
        left_out[UNFINISHED] += len(said) - len(settled)
        parent = session_name(session.parent_id)
        # A session whose parent is gone may begin with messages that the host has copied, and dated anew.
        is_dated = not session.parent_id or session.parent_id in self._sessions
        counts: Counter[str] = Counter()
        last_said: dict[str, float] = {}
        sayings: list[Line] = []
        for line in settled:
            if line.at_us - last_said.get(line.key, -math.inf) <= settings.turn_retry_window * 1e6:
                left_out[AGAIN] += 1
                continue
            last_said[line.key] = line.at_us
            sayings.append(line)
        next_said: dict[str, float] = {line.key: line.at_us for line in reversed(said[len(settled) :])}
        nexts: list[float] = []
        for line in reversed(sayings):
            nexts.append(next_said.get(line.key, math.inf))
            next_said[line.key] = line.at_us
        for line, next_us in zip(sayings, reversed(nexts), strict=True):
            counts[line.key] += 1
            reason = BEFORE_SINCE if line.at_us < self.rules.since * 1e6 else ""
            reason = reason or (TOO_SHORT if is_noise(line.content, settings.turn_min_chars) else "")
            if reason:
                left_out[reason] += 1
                continue
            metadata: dict[str, Any] = {"platform": session.source} if session.source else {}
            metadata |= {"tools": list(line.tools)} if line.tools else {}
            turn = AddTurn(
                theme, session_name(session.id), line.role, line.content, counts[line.key],
                Moment(line.at_us, line.at_us), is_live=False, parent_session_id=parent, metadata=metadata,
                home_id=self.rules.home_id, origin=RowOrigin.IMPORT, untrusted=bool(line.tools), is_dated=is_dated,
            )  # fmt: skip
            self.intake.add(Found(turn, next_us=next_us))
        self._delegated(session, theme)

    def _delegated(self, session: PastSession, theme: str) -> None:
        """The work of a session's subagents: what each was asked first, and what it said last."""
        where = Session(theme, session_name(session.id), theme, platform=session.source)
        for child in self._subagents.get(session.id, ()):
            task: Any = None
            result: Any = None
            at = 0.0
            for message in self.past.messages(child):
                if message.role == "user" and task is None:
                    task = message.content
                elif message.role == "assistant" and not message.tool_calls:
                    result, at = message.content, message.at
            if task is None or result is None or at < self.rules.since:
                continue
            when, rules = Moment(int(at * 1e6), int(at * 1e6)), self.rules
            told = (text_of(task), text_of(result), child)
            for item in delegation(*told, where, when, self.intake.settings, rules.home_id):
                self.intake.add(Found(replace(item, ordinal=1, is_live=False), next_us=math.inf))

    # Whose session it is.

    def _theme(self, session: PastSession, said: Sequence[Line]) -> tuple[str, str]:
        """The theme that a session was said in, or why it is left out."""
        named = self._nearest_with_key(session)
        key = _key(named)
        if key or named.source in _LOCAL_SOURCES:
            return self.rules.theme(key, named.thread_id), ""
        return self._api_theme(session, named, said) if named.source == API_SOURCE else ("", UNKNOWN_PARTNER)

    def _api_theme(self, session: PastSession, named: PastSession, said: Sequence[Line]) -> tuple[str, str]:
        """The host keeps no key of API requests, and gives those of several themes one session id.

        The theme is the one that our own words in its prompt name, that holds turns of it, or that the operator names.
        """
        told = theme_name(named.named_theme)
        told = "" if is_private_theme(told) else told
        holding = self._holding(session, said)
        if session.id in self._shared or len(holding | ({self._aliases.get(told, told)} if told else set())) > 1:
            return "", SHARED_ID
        if told:
            return told, ""
        if holding:
            return next(iter(holding)), ""
        return (self.rules.theme(self.rules.api_theme), "") if self.rules.api_theme else ("", UNNAMED_API)

    def _holding(self, session: PastSession, said: Sequence[Line]) -> set[str]:
        """The themes that hold turns of a session.

        The opening proves nothing: the host makes an API session's id from it, so chats that begin alike have one id.
        """
        opening = next((line.key for line in said if line.role == "user"), "")
        keys = {line.key for line in said} - {opening}
        values = {"themes": list(self._themes), "session_id": session_name(session.id), "digests": sorted(keys)}
        with self.intake.transaction() as connection:
            return {str(theme) for (theme,) in run(connection, "carry/holding_themes", **values)}

    def _nearest_with_key(self, session: PastSession) -> PastSession:
        """The session or its nearest ancestor that says with whom it is: what goes on does not always repeat it."""
        current: PastSession | None = session
        for _ in range(MAX_ANCESTORS):
            if current is None:
                break
            if _key(current) or current.named_theme:
                return current
            current = self._sessions.get(current.parent_id)
        return session


def _key(session: PastSession) -> str:
    if session.key:
        return session.key
    person = session.chat_id or session.user_id
    if not person or session.source in _LOCAL_SOURCES or session.source == API_SOURCE:
        return ""
    # Hosts of before the session key: the key they would have made for a chat with this person.
    return f"agent:main:{session.source}:{session.chat_type or 'dm'}:{person}"


def _begins_again(lines: Sequence[Line]) -> bool:
    """Whether the words a session begins with stand in it again: chats that begin alike have one id at the host."""
    asked = [line.key for line in lines if line.role == "user" and not line.is_note]
    return bool(asked) and asked[0] in asked[1:]


def _parents_first(listed: Sequence[PastSession], sessions: Mapping[str, PastSession]) -> Iterator[PastSession]:
    done: set[str] = set()
    for session in listed:
        waiting = [session]
        while (parent := sessions.get(waiting[-1].parent_id)) is not None and parent not in waiting:
            waiting.append(parent)
        for each in reversed(waiting):
            if each.id not in done:
                done.add(each.id)
                yield each


def _without_reviews(messages: Iterator[PastMessage]) -> Iterator[PastMessage]:
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


def _as_told(message: PastMessage) -> dict[str, Any]:
    """A stored message as the host shows it in a transcript."""
    try:
        calls = json.loads(message.tool_calls) if message.tool_calls else []
    except (ValueError, RecursionError):
        calls = []
    return {"role": message.role, "content": message.content, "tool_calls": calls}


def _settled(said: Sequence[Line], session: PastSession, window: float, now: float) -> Sequence[Line]:
    """The lines without an exchange at the end that live traffic is about to store.

    Live traffic stores both sides of an exchange when it is complete. It knows a row of ours by its words and its time,
    unless the answer took longer than the time within which the same words count as the same.
    """
    last = next((place for place in range(len(said) - 1, -1, -1) if said[place].role == "user"), None)
    if session.ended_at is not None or last is None:
        return said
    asked_at, answered_at = said[last].at_us / 1e6, said[-1].at_us / 1e6
    if last == len(said) - 1:
        is_open = now - asked_at < UNANSWERED_SECONDS
    else:
        is_open = answered_at - asked_at > window and now - answered_at < JUST_ANSWERED_SECONDS
    return said[:last] if is_open else said
