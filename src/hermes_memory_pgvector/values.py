"""The values that travel between rooms: sessions, write items, questions and hits.

All frozen. Dicts exist only at the borders (host kwargs, JSON, rows) and are converted there at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

Target = Literal["memory", "user"]
TARGETS: tuple[Target, ...] = ("memory", "user")

Role = Literal["user", "assistant", "system", "tool"]

PRIVATE_THEME_PREFIXES = ("dm-", "group-")
BENCH_THEME = "_bench"
DEFAULT_THEME = "default"


def is_private_theme(theme: str) -> bool:
    """Whether a theme is visible only to itself: never in `all`, never by name."""
    return theme == BENCH_THEME or theme.startswith(PRIVATE_THEME_PREFIXES)


class Origin(StrEnum):
    """Where a memory comes from: reported by the memory tool, or found by comparing files."""

    TOOL = "tool"
    FILE = "file"


class RowOrigin(StrEnum):
    """Who or what put the words of a row there."""

    USER = "user"
    ASSISTANT = "assistant"
    DELEGATION = "delegation"
    MEMORY_TOOL = "memory_tool"
    BACKGROUND_REVIEW = "background_review"
    FILE = "file"
    OPERATOR = "operator"
    IMPORT = "import"
    MCP = "mcp"
    """Another agent, through `hermes-pgvector mcp`."""


TOOL_KINDS = ("web", "browser", "mcp", "other", "recall", "webhook")
"""What makes a turn untrusted."""
NAMED_ORIGINS: tuple[str, ...] = tuple(dict.fromkeys((*(each.value for each in RowOrigin), *TOOL_KINDS, "untrusted")))
"""What rows can be asked for by: what wrote them, the tools their turn used, whether a stranger's text was among them.

`mcp` is both: what other agents wrote through `hermes-pgvector mcp`, and what came of a turn that asked an MCP server.
"""
MCP_HOLDER = "mcp"
"""Holds what other agents have remembered, in place of a home: there is no file that could decide about it."""


class Moment(NamedTuple):
    """When something happened.

    `wall_us` is the time people read; `order_us` orders the operations of a process across clock steps.
    """

    wall_us: int
    order_us: int


LINEAGES = {"branch": "branch", "compression": "compression", "resume": "resume", "new_session": "new"}
"""Why the host goes on under another session id, and what is stored of that."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: resolved once, when the host initialises the provider."""

    theme: str
    """Where this conversation writes and what it recalls."""
    session_id: str
    profile_theme: str
    """Where entries of this home's MEMORY.md and USER.md belong when nobody says otherwise."""
    parent_session_id: str = ""
    may_write: bool = True
    platform: str = ""
    """Where people write: cli, api_server, telegram …"""
    author: str = ""
    """A pseudonym for the person who writes, where the host tells who it is."""
    lineage: str = ""
    """How the session came from its parent, where the host tells: one of LINEAGES."""


@dataclass(frozen=True, slots=True)
class AddMemory:
    """A new MEMORY.md / USER.md entry."""

    theme: str
    target: Target
    content: str
    when: Moment
    home_id: str
    origin: Origin = Origin.TOOL
    metadata: Mapping[str, Any] = field(default_factory=dict)
    written_by: RowOrigin | None = None
    """Where the words come from; None where nobody said."""
    untrusted: bool = False
    """Whether a stranger's text, such as a web page, was read in the exchange it comes from."""


@dataclass(frozen=True, slots=True)
class ReplaceMemory:
    """An entry changed. `old_text` is a literal substring of it; `previous` is the exact old entry where known."""

    theme: str
    target: Target
    content: str
    old_text: str
    when: Moment
    home_id: str
    previous: str | None = None
    origin: Origin = Origin.TOOL
    metadata: Mapping[str, Any] = field(default_factory=dict)
    written_by: RowOrigin | None = None
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class RemoveMemory:
    """An entry gone."""

    theme: str
    target: Target
    old_text: str
    when: Moment
    home_id: str
    previous: str | None = None
    origin: Origin = Origin.TOOL
    metadata: Mapping[str, Any] = field(default_factory=dict)
    written_by: RowOrigin | None = None
    untrusted: bool = False


class FileSays(NamedTuple):
    """What stands in MEMORY.md or USER.md for a hook that tells of a write without its words."""

    entries: list[str]
    """The entries that were written."""
    previous: str | None
    """The entry that is gone."""


MemoryOperation = AddMemory | ReplaceMemory | RemoveMemory


@dataclass(frozen=True, slots=True)
class AddTurn:
    """A turn. `ordinal` is 2 for the second occurrence of the same words by the same role in the session, where whoever
    brings it knows that; 0 has the database number it.
    """

    theme: str
    session_id: str
    role: Role
    content: str
    ordinal: int
    when: Moment
    is_live: bool
    """True when a hook reported it at once; False when it was found in a transcript afterwards."""
    parent_session_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""
    """Hex digest of the words once said, where an operator has changed them; only what is brought along has one."""
    home_id: str = ""
    """The home it was said in; empty where nobody knows."""
    origin: RowOrigin | None = None
    untrusted: bool = False
    is_dated: bool = True
    """False when `when` says only when it was found: a transcript does not say when its words were said."""


@dataclass(frozen=True, slots=True)
class UndoTurns:
    """The user has taken back the end of a session; the host's own store says which turns."""

    theme: str
    session_id: str
    turns: tuple[str, ...]
    """Hex digests of the last exchange that was reported there: it counts where the host's store cannot be read."""
    when: Moment


@dataclass(frozen=True, slots=True)
class DistrustMemories:
    """What the memory tool wrote after a stranger's text was read: only the end of a turn shows which tools it used."""

    theme: str
    session_id: str
    calls: tuple[str, ...]
    """The ids of the calls of the memory tool."""
    tools: tuple[str, ...]
    """The kinds of tools that make it untrusted."""
    when: Moment


WriteItem = MemoryOperation | AddTurn | UndoTurns | DistrustMemories


class Scope(StrEnum):
    """Which rows a question covers."""

    CURRENT = "current"
    SESSION = "session"
    ALL = "all"
    NAMED = "named"


class Kind(StrEnum):
    """What a hit is."""

    MEMORY = "memory"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class Question:
    """A search of the memory."""

    text: str
    kind: Kind
    theme: str
    """The theme whose rows may answer; the asker's own unless scope is NAMED. Unused for ALL, except to let private
    themes see themselves."""
    scope: Scope = Scope.CURRENT
    session_id: str = ""
    targets: tuple[Target, ...] = TARGETS
    limit: int = 5
    since: datetime | None = None
    until: datetime | None = None
    by_session: bool = False
    """Whether the best turn of every session comes before all others, for questions that several sessions answer."""
    min_similarity: float | None = None
    """A cosine that hits with a vector must reach besides; None leaves it to the score."""
    is_ambient: bool = False
    """Whether this is prefetch, which nobody asked for: every hit must then reach a higher bar."""
    now: datetime | None = None
    """The time that phrases such as 'yesterday' refer to."""
    wants_neighbours: bool = False
    """Whether each turn found brings along the turns just before and after it."""
    trusted_only: bool = False


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The turn just before or after a hit in its session: evidence beside the hit, not a hit."""

    role: Role
    ts: datetime
    content: str
    untrusted: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer."""

    kind: Kind
    id: int
    theme: str
    ts: datetime
    content: str
    score: float | None
    """Cosine similarity clipped to 0..1; None when only words matched."""
    rank: float
    """What the hits are ordered by: higher is better."""
    meaning: float | None = None
    """How many standard deviations it is nearer than unrelated texts; None when only words matched."""
    words: tuple[str, ...] = ()
    """The words of the question it contains."""
    words_share: float = 0.0
    """How much of the question these are, by rarity."""
    target: Target | None = None
    session_id: str | None = None
    role: Role | None = None
    count: int = 1
    """How many identical rows this hit stands for."""
    before: Neighbour | None = None
    after: Neighbour | None = None
    origin: str = ""
    """A RowOrigin, or `unknown`."""
    untrusted: bool = False
    tools: tuple[str, ...] = ()
    """The kinds of tools that make it untrusted."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A row of `embedding_models`: which vector tables belong to which model."""

    id: int
    name: str
    dim: int
    unrelated_mean: float | None = None
    """The cosine of unrelated texts in it; None until it is measured."""
    unrelated_sd: float | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    """What its questions and texts have before them; None until somebody embeds with it."""
    vector_oid: int = 0
    """The type id of `halfvec` in this database, needed to send arrays of vectors."""
    is_current: bool = True
    """Whether new rows get its vectors. Those of other models stay until somebody drops them."""

    @property
    def is_measured(self) -> bool:
        """Whether similarity in it can be judged."""
        return self.unrelated_mean is not None and self.unrelated_sd is not None

    def deviations(self, similarity: float) -> float:
        """How many standard deviations nearer than unrelated texts something is; only where it is measured."""
        assert self.unrelated_mean is not None
        assert self.unrelated_sd is not None
        return (similarity - self.unrelated_mean) / self.unrelated_sd
