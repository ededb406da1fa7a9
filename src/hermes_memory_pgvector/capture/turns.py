"""Finished turns, transcripts and undos as write items. Pure but for the clock and what was recorded before.

The host shows a transcript with each turn, and when a session ends or is compressed: the safety net of the hooks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hermes_memory_pgvector.capture import transcript
from hermes_memory_pgvector.capture.provenance import Judge, Tools
from hermes_memory_pgvector.capture.said import Said, SessionKey
from hermes_memory_pgvector.capture.transcript import CleanUser, TranscriptLine, Turn
from hermes_memory_pgvector.clock import Clock
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.masks import may_be_masked
from hermes_memory_pgvector.text.names import MAX_NAME_CHARS
from hermes_memory_pgvector.values import AddTurn, DistrustMemories, Moment, RowOrigin, Session, UndoTurns, WriteItem

LOOKED_BACK = 100
"""Messages at the end of a transcript in which the words of the turn being reported are looked for."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TurnCapture:
    """What it takes to turn the host's reports into write items."""

    settings: Settings
    clock: Clock
    said: Said
    clean_user: CleanUser | None
    home_id: str = ""

    def begin(self, session: Session, message: Any) -> None:
        """A turn starts: remember the question, which nobody reports if the user interrupts."""
        found = self._lines([{"role": "user", "content": message}], 0.0)
        self.said.begin(_key(session), found[0].turn if found else None)

    def report(
        self, session: Session, user_content: Any, assistant_content: Any, messages: Any, author: Mapping[str, Any]
    ) -> list[WriteItem]:
        """An exchange is complete: its turns that are new and worth keeping; `author` is who has asked."""
        settings = self.settings
        now = self.clock.now()
        question = transcript.turn_of("user", user_content, settings.turn_max_chars)
        answer = transcript.turn_of("assistant", assistant_content, settings.turn_max_chars)
        tools, calls = Judge(settings, session.platform).of_exchange(messages, question)
        turns = [turn for turn in (question, answer) if turn is not None]
        kept = worth_keeping(turns, settings)
        self.said.count_short(sum(not transcript.is_noise(turn.content, 0) for turn in turns) - len(kept))
        forms = [
            (digest, self._shown(turn, messages) or digest, *([turn.outline] if may_be_masked(turn.content) else []))
            for turn, digest in ((turn, turn.digest) for turn in turns)
        ]
        new = self.said.report(_key(session), forms[0][0] if question is not None else "", forms)
        return [
            *(
                self._turn(session, turn, now, tools, author if turn is question else {}, is_live=True)
                for turn, is_new in zip(turns, new, strict=True)
                if is_new and turn in kept
            ),
            *_distrusted(session, calls, now),
        ]

    def distrust_memories(self, session: Session, messages: Any) -> list[WriteItem]:
        """What the memory tool wrote in the last exchange from a stranger's text, where turns are not stored."""
        _, calls = Judge(self.settings, session.platform).of_exchange(messages, None)
        return _distrusted(session, calls, self.clock.now())

    def read_transcript(
        self, session: Session, spoken: Session | None, messages: Any, started_at: float
    ) -> list[WriteItem]:
        """The turns of a transcript that nobody has reported; those from before `started_at` were reloaded.

        The host keeps the transcript of its last turn, which was `spoken` in a session that may have been left since.
        """
        lines = self._lines(messages, started_at)
        said = [line.turn for line in lines if line.turn is not None and not line.is_reloaded]
        kept = worth_keeping(said, self.settings)
        is_live = any(not line.is_loaded for line in lines)
        if spoken is not None and spoken.session_id != session.session_id and is_live:
            session = spoken if self.said.knows_any(_key(spoken), kept) else session
        now = self.clock.now()
        found, calls = Judge(self.settings, session.platform).of_transcript(messages, self.settings.turn_max_chars)
        author = {"id": session.author} if session.author else {}
        return [
            *(
                self._turn(
                    session, turn, now, found.get(turn, ()), author if turn.role == "user" else {}, is_live=is_just_said
                )
                for turn, is_just_said in self.said.find(_key(session), kept)
            ),
            *_distrusted(session, calls, now),
        ]

    def undo(self, session: Session) -> list[WriteItem]:
        """The user has taken back the end of a session."""
        turns = self.said.undo(_key(session))
        return [UndoTurns(session.theme, session.session_id, turns, self.clock.now())]

    def _lines(self, messages: Any, not_before: float) -> list[TranscriptLine]:
        return transcript.lines(
            messages, self.settings.turn_max_chars, clean_user=self.clean_user, not_before=not_before
        )

    def _shown(self, turn: Turn, messages: Any) -> str:
        """The digest of the words that the transcript has for a turn: those of the last one of its role, if others."""
        last: Sequence[Any] = messages[-LOOKED_BACK:] if isinstance(messages, list | tuple) else ()
        for message in reversed(last):
            if not isinstance(message, Mapping) or message.get("role") != turn.role:
                continue
            if message.get("content") == turn.content:
                break
            lines = self._lines([message], 0.0)
            if lines and lines[0].turn is not None:
                return lines[0].turn.digest
        return ""

    def _turn(
        self,
        session: Session,
        turn: Turn,
        now: Moment,
        tools: Tools,
        author: Mapping[str, Any],
        *,
        is_live: bool,
    ) -> AddTurn:
        """A turn as a write item; `tools` are those behind the assistant's words."""
        is_user = turn.role == "user"
        tools = Judge(self.settings, session.platform).of_user(turn.content) if is_user else tools
        metadata: dict[str, Any] = {"platform": session.platform} if session.platform else {}
        if session.lineage and session.parent_session_id:
            metadata["lineage"] = session.lineage
        if author:
            metadata["author"] = dict(author)
        if tools:
            metadata["tools"] = list(tools)
        return AddTurn(
            session.theme, session.session_id, turn.role, turn.content, 0, now, is_live=is_live,
            parent_session_id=session.parent_session_id, metadata=metadata or _NOTHING, home_id=self.home_id,
            origin=RowOrigin.USER if is_user else RowOrigin.ASSISTANT,
            untrusted=bool(tools),
            # A transcript does not say when its words were said.
            is_dated=is_live,
        )  # fmt: skip


def worth_keeping(turns: Sequence[Turn], settings: Settings) -> list[Turn]:
    """The turns of a conversation that are long enough, by the operator's rule, and no bare acknowledgements."""
    exchanges: list[list[Turn]] = []
    for turn in turns:
        if turn.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(turn)
    kept = []
    for exchange in exchanges:
        least = settings.turn_min_chars
        if settings.turn_rule == "pair" and any(len(turn.content.strip()) >= least for turn in exchange):
            least = 0
        kept += [turn for turn in exchange if not transcript.is_noise(turn.content, least)]
    return kept


def _distrusted(session: Session, calls: Mapping[str, Tools], now: Moment) -> list[WriteItem]:
    by_tools: dict[Tools, list[str]] = defaultdict(list)
    for call, tools in calls.items():
        by_tools[tools].append(call[:MAX_NAME_CHARS])
    return [
        DistrustMemories(session.theme, session.session_id, tuple(each), tools, now) for tools, each in by_tools.items()
    ]


def _key(session: Session) -> SessionKey:
    return session.theme, session.session_id
