"""`recall`: search a memory as an agent would, with the names of what was found."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hermes_memory_pgvector.errors import MemoryPluginError, UsageError
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import amounts, parse
from hermes_memory_pgvector.terminal.fields import aside, column
from hermes_memory_pgvector.terminal.operation import Facts, Note, Operation, Option, command
from hermes_memory_pgvector.text.names import theme_name

if TYPE_CHECKING:
    from hermes_memory_pgvector.config.settings import Settings
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.recall.recall import Answer
    from hermes_memory_pgvector.runtime.engine import Engine
    from hermes_memory_pgvector.values import Hit, Neighbour, Question

BUDGET_SECONDS: Final = 30.0
EXCERPT_CHARS: Final = 300
"""How much of a long text is shown, around the words searched for."""
SCOPES: Final = ("current", "all", "session")
"""Scopes that are not the name of a theme."""
MOST_OTHERS: Final = 5
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "memories": ("recall_memory",),
    "turns": ("recall_conversation",),
    "both": ("recall_memory", "recall_conversation"),
}
WHOSE: Final = {"memory": "MEMORY.md", "user": "USER.md"}
USUAL_ORIGINS: Final = ("", "unknown", "memory_tool")


@dataclass(frozen=True, slots=True)
class Beside:
    """The turn before or after one that was found."""

    role: str
    ts: datetime
    content: str

    @property
    def told(self) -> str:
        """For people."""
        return f"{self.ts:%Y-%m-%d}  {self.role}  {self.content}"


@dataclass(frozen=True, slots=True)
class HitLine:
    """One memory or turn that was found."""

    id: str = column("id")
    whose: str = column("whose")
    agent_identity: str = column("theme")
    ts: datetime | None = column("day", show=lambda at: f"{at:%Y-%m-%d}")
    score: float | None = column("meaning", right=True, show=lambda score: "–" if score is None else f"{score:.2f}")
    state: str = column("state", rare=True)
    excerpt: str = column("", text=True, whole=True, is_aside=True)
    content: str = ""
    kind: str = ""
    target: str | None = None
    session_id: str | None = None
    role: str | None = None
    origin: str = ""
    untrusted: bool = False
    before: Beside | None = column("before", below=True, rare=True, show=lambda turn: turn.told)
    after: Beside | None = column("after", below=True, rare=True, show=lambda turn: turn.told)


Shown = TypeVar("Shown", bound=HitLine)


@dataclass(frozen=True, slots=True)
class Recalled(Facts):
    """What a search has found."""

    theme: str
    results: tuple[HitLine, ...]
    count: int
    degraded: str | None
    note: str | None = None
    notes: tuple[Note, ...] = aside(())


def recall(memory: Memory, *, query: str, theme: str | None, kind: str, scope: str, **given: Any) -> Recalled:
    """Search, and say what was found and where else there is something."""
    from hermes_memory_pgvector.deadline import Deadline
    from hermes_memory_pgvector.ops import parts
    from hermes_memory_pgvector.recall.tools import nothing_found

    with memory.engine() as engine:
        own = theme_name(theme or "") or parts.profile_theme(memory.home, engine.settings)
        questions = asked(engine.settings, own, KINDS[kind], {"query": query, "scope": scope, **given})
        deadline = Deadline.after(BUDGET_SECONDS)
        _warm_up(engine, deadline)
        started = time.perf_counter()
        answers = engine.search(questions, deadline)
        took = time.perf_counter() - started
        hits = [hit for answer in answers for hit in answer.hits]
        notes: list[Note] = []
        if not hits:
            named = scope if scope not in SCOPES else theme
            if named:
                require(memory, theme_name(named))
            elif scope == "current":
                notes += _elsewhere(memory, engine, query, own, questions, answers, deadline)
    degraded = next((answer.degraded for answer in answers if answer.degraded), None)
    nothing = None if hits else nothing_found(list(zip(questions, answers, strict=True)))
    where = own if scope == "current" else f"scope {scope}"
    order = "; memories, then turns, the best first" if len({hit.kind for hit in hits}) > 1 else ""
    told = nothing or f"{amounts.count(len(hits), 'hit')} in {where}, {amounts.seconds(took)}{order}"
    notes = [Note("note", told), *notes, *([Note("warning", degraded)] if degraded else [])]
    return Recalled(own, tuple(line_of(hit, HitLine) for hit in hits), len(hits), degraded, nothing, tuple(notes))


def asked(settings: Settings, theme: str, tools: tuple[str, ...], given: dict[str, Any]) -> list[Question]:
    """The questions that an agent's tools would ask."""
    from hermes_memory_pgvector.recall.tools import BadArgument
    from hermes_memory_pgvector.recall.tools import parse as parse_question
    from hermes_memory_pgvector.values import Session

    since, until = given.pop("since", None), given.pop("until", None)
    try:
        questions = [
            parse_question(tool, given, Session(theme, "", theme), replace(settings, scope_default="current"))
            for tool in tools
        ]
    except BadArgument as problem:
        raise UsageError(str(problem)) from None
    return [replace(each, since=since, until=until) for each in questions]


def _warm_up(engine: Engine, deadline: Deadline) -> None:
    """Load the model and connect, as an agent's process has done long ago: the time shown is that of the search."""
    # Whatever is wrong, the search itself says so.
    with contextlib.suppress(MemoryPluginError):
        engine.embedder.info(deadline)
        engine.embedder.embed_query("ready", deadline)
    with contextlib.suppress(MemoryPluginError), engine.pool.connection(deadline):
        pass


def require(memory: Memory, theme: str) -> None:
    """Say that a theme which was named does not exist, instead of that it holds nothing."""
    with memory.reading(theme):
        pass


def _elsewhere(
    memory: Memory, engine: Engine, query: str, theme: str, questions: list[Question], answers: list[Answer],
    deadline: Deadline,
) -> list[Note]:  # fmt: skip
    """Where else there is something: what other themes have found, else the largest of them."""
    from hermes_memory_pgvector.values import Scope

    found = engine.search([replace(each, scope=Scope.ALL) for each in questions], deadline)
    counts: dict[str, int] = {}
    for hit in (hit for answer in found for hit in answer.hits):
        counts[hit.theme] = counts.get(hit.theme, 0) + 1
    if counts:
        told = ", ".join(f"{amounts.count(number, 'hit')} in {name}" for name, number in counts.items())
        return [Note("note", told, "to see them", command("recall", query, "--scope", "all"))]
    if any(answer.searched != 0 for answer in answers):
        return []
    from hermes_memory_pgvector.store import browse
    from hermes_memory_pgvector.values import is_private_theme

    with memory.reading() as connection:
        names = [each.theme for each in browse.themes(connection) if not is_private_theme(each.theme)]
    if not names or theme in names:
        return []
    return [Note("note", f"themes that hold something: {', '.join(names[:MOST_OTHERS])}", "ask one with --theme NAME")]


def line_of(hit: Hit, shape: type[Shown], **more: Any) -> Shown:
    """A hit as it is shown."""
    from hermes_memory_pgvector.text.excerpt import excerpt, one_line

    odd = "" if hit.origin in (hit.role, *USUAL_ORIGINS) or hit.untrusted else hit.origin.replace("_", " ")
    tools = f": {', '.join(hit.tools)}" if hit.untrusted and hit.tools else ""
    return shape(
        id=f"{'m' if hit.target else 't'}{hit.id}",
        whose=WHOSE[hit.target] if hit.target else hit.role or "",
        agent_identity=hit.theme,
        ts=hit.ts,
        score=None if hit.score is None else round(hit.score, 4),
        state=f"untrusted{tools}" if hit.untrusted else odd,
        excerpt=excerpt(one_line(hit.content), hit.words, EXCERPT_CHARS),
        content=hit.content,
        kind=hit.kind.value,
        target=hit.target,
        session_id=hit.session_id,
        role=hit.role,
        origin=hit.origin,
        untrusted=hit.untrusted,
        before=_beside(hit.before),
        after=_beside(hit.after),
        **more,
    )


def _beside(turn: Neighbour | None) -> Beside | None:
    return None if turn is None else Beside(str(turn.role), turn.ts, turn.content)


RECALL = Operation(
    "recall",
    "search memories and past turns, as an agent would",
    (
        Option("query", "a question, keywords, or an exact token", required=True, metavar="QUERY"),
        Option("--theme", "theme to search as (default: the theme of a chat in this home)", metavar="THEME"),
        Option("--kind", "what to search (default: both)", default="both", choices=tuple(KINDS)),
        Option("--scope", "current (default), all, or the name of a theme", default="current", metavar="SCOPE"),
        Option("--limit", "hits of each kind, at most 20 (default: 5)", parse.positive, 5, metavar="N"),
        Option("--since", f"only from then on: {parse.FORMS}; UTC", parse.moment, metavar="TIME"),
        Option("--until", "only before then; a date includes its whole day", parse.end, metavar="TIME"),
        Option("--context", "show the turn before and the turn after each turn found", is_flag=True),
    ),
    recall,
    (
        ("recall 'what did we decide about the launch'", "search as an agent of this home would"),
        ("recall SKF-6203 --scope all --kind memories", "an exact token, in every theme"),
        ("recall 'deploy' --since 2026-11-01 --context", "recent turns, with those around them"),
    ),
)  # fmt: skip
