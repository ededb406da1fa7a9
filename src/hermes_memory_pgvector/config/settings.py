"""Every setting, declared once.

The parser, the host's configuration schema, the reference page and `config show` all come from these lines. Parsing
never raises: it reports every wrong value by name and uses the default instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from hermes_memory_pgvector.config import kinds
from hermes_memory_pgvector.config.redaction import redact_dsn, redact_url, redact_variable

MEBIBYTE = 1024 * 1024
SHORT_CHARS = 14
"""Error messages repeat a wrong value up to this length."""
HISTORY_DAYS = 365
"""For how long the history of memories is kept where `ttl_days` does not say."""

GROUPS = {
    "database": "Where the memory is",
    "embedder": "How texts become vectors",
    "recall": "What is recalled",
    "stored": "What is stored",
    "themes": "Whose memory it is",
    "kept": "How long it is kept",
    "compatibility": "For compatibility",
}
"""What settings are about, in the order of the reference."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is known about one setting."""

    group: str
    help: str
    parse: kinds.Parser
    expects: str
    choices: tuple[str, ...] = ()
    in_wizard: bool = False
    """Whether the host's setup wizard and dashboard ask for it."""
    secret: bool = False
    show: Callable[[Any], Any] | None = None
    """How to show a value that may hold a password or a key; None for one that cannot."""

    @property
    def is_rare(self) -> bool:
        """Read because existing configurations may have it; no operator needs it, so `config show` leaves it out."""
        return self.group == "compatibility"


EMBEDDER_PARTS = ("url", "model", "dim", "protocol", "prefixes", "api_key_env")
"""What describes an embedder: the settings embed_url, embed_model and so on."""


def _is(default: Any, group: str, parse: kinds.Parser, expects: str, help: str, **more: Any) -> Any:
    assert group in GROUPS
    return field(default=default, metadata={"declaration": Declaration(group, help, parse, expects, **more)})


def _flag(default: bool, group: str, help: str) -> Any:
    return _is(default, group, kinds.boolean, "true or false", help)


def _text(default: str, group: str, help: str, **more: Any) -> Any:
    return _is(default, group, kinds.text, "text", help, **more)


def _integer(default: int, group: str, at_least: int, at_most: int, help: str, **more: Any) -> Any:
    expects = f"a whole number from {at_least} to {at_most}"
    return _is(default, group, kinds.number(int, at_least, at_most), expects, help, **more)


def _decimal(default: float, group: str, at_least: float, at_most: float, help: str) -> Any:
    expects = f"a number from {at_least:g} to {at_most:g}"
    return _is(default, group, kinds.number(float, at_least, at_most), expects, help)


def _choice(default: str, group: str, choices: tuple[str, ...], help: str) -> Any:
    return _is(default, group, kinds.word(*choices), f"one of {', '.join(choices)}", help, choices=choices)


@dataclass(frozen=True, slots=True)
class Settings:
    """The current configuration."""

    dsn: str = _text(
        "", "database", "Postgres connection string; empty means the embedded server of this home.", in_wizard=True,
        secret=True, show=redact_dsn,
    )  # fmt: skip
    own_server: bool = _flag(
        False, "database", "Give this profile an embedded Postgres of its own instead of the root home's."
    )
    journal_sync: Literal["process", "batch", "always"] = _choice(
        "batch", "database", ("process", "batch", "always"),
        "What an acknowledged write survives; see docs/explanation/durability.md.",
    )  # fmt: skip
    journal_max_mb: int = _integer(256, "database", 1, 1048576, "Megabytes the journal may hold.")

    embed_url: str = _text(
        "", "embedder", "Embedding endpoint (OpenAI-compatible or Ollama); empty means the local model.",
        in_wizard=True, show=redact_url,
    )  # fmt: skip
    embed_model: str = _text("nomic-embed-text", "embedder", "Model the embedding endpoint should use.", in_wizard=True)
    embed_dim: int | None = _is(
        None, "embedder", kinds.optional(kinds.number(int, 1, 4000)), "a whole number from 1 to 4000, or empty",
        "Dimension of the model's vectors; empty takes it from the model or asks the endpoint.",
    )  # fmt: skip
    embed_protocol: Literal["auto", "openai", "ollama", "local"] = _choice(
        "auto", "embedder", ("auto", "openai", "ollama", "local"), "Protocol of the endpoint; auto detects it once."
    )
    embed_prefixes: str = _text(
        "", "embedder", "What the model wants before questions and texts, as query=…|document=…|; empty goes by the"
        " model's name, none sends nothing.",
    )  # fmt: skip
    embed_api_key_env: str = _text(
        "", "embedder", "Name of the environment variable that holds the endpoint's key.", in_wizard=True,
        show=redact_variable,
    )  # fmt: skip
    embed_on_write: bool = _flag(True, "embedder", "Embed new rows; false leaves them to keyword search and `reembed`.")
    conversation_embed_policy: Literal["all", "substantive_only", "none"] = _choice(
        "all", "embedder", ("all", "substantive_only", "none"),
        "Which turns get a vector: all, only long ones, or none.",
    )  # fmt: skip
    embed_timeout: float = _decimal(
        5.0, "embedder", 0.05, 7, "Seconds a recall may spend embedding its question, within its own budget."
    )

    prefetch_limit: int = _integer(5, "recall", 1, 50, "Memories offered per turn.", in_wizard=True)
    prefetch_turns: int = _integer(
        6, "recall", 0, 20, "Past turns offered per turn beside the memories; beyond the third only what fits well."
    )
    prefetch_sources: Literal["memories", "both"] = _choice(
        "both", "recall", ("memories", "both"), "What is offered before a turn: memories only, or past turns too."
    )
    prefetch_trust: Literal["all", "trusted"] = _choice(
        "trusted", "recall", ("all", "trusted"),
        "What is offered unasked: all, or nothing from exchanges that used untrusted tools.",
    )  # fmt: skip
    prefetch_budget: float = _decimal(2.0, "recall", 0.05, 7.5, "Seconds a prefetch may take.")
    min_similarity: float = _decimal(
        0.0, "recall", 0, 1, "A cosine that whatever is offered unasked must reach as well; 0 leaves it to the score."
    )  # fmt: skip
    hybrid_search: bool = _flag(True, "recall", "Search by keywords as well as by meaning.")
    recency_half_life_days: float = _decimal(
        0.0, "recall", 0, 36500, "Days after which age halves a hit's weight; 0 ignores age."
    )
    scope_default: str = _text(
        "current", "recall", "Scope of the recall tools when the model gives none: current or all."
    )
    tools: Literal["all", "recall"] = _choice(
        "all", "recall", ("all", "recall"), "Which tools the agent gets: all, or recall without retract_memory."
    )
    recall_log: Literal["off", "ids", "text"] = _is(
        "ids", "recall", kinds.recall_log, "off, ids or text",
        "What is kept of the last answers of recall, for `why`: nothing, ids with scores and times, or the questions,"
        " too.",
        choices=("off", "ids", "text"),
    )  # fmt: skip

    sync_turns: bool = _flag(True, "stored", "Store conversation turns.")
    turn_min_chars: int = _integer(40, "stored", 0, 100000, "Shorter turns are not stored.")
    turn_rule: Literal["each", "pair"] = _choice(
        "each", "stored", ("each", "pair"),
        "Whether each side of an exchange is judged alone, or a short side is kept with a long one.",
    )  # fmt: skip
    bulk_sync_on_init: bool = _flag(True, "stored", "Mirror MEMORY.md and USER.md of this home.")
    write_contexts: tuple[str, ...] = _is(
        ("primary", "cron"), "stored", kinds.words, "a list of words",
        "Agent contexts that may write; others only recall: primary (chats), cron (scheduled jobs), subagent, and what"
        " else a host names.",
    )  # fmt: skip
    mask_secrets: bool | tuple[tuple[str, str], ...] = _is(
        True, "stored", kinds.secrets,
        "true, false, or a map of kinds (lower case, digits, hyphens) to regular expressions that match no empty text",
        "Mask keys, tokens and passwords before anything is stored or embedded; a map adds kinds of your own, where a"
        " group named secret is the part to mask.",
    )  # fmt: skip
    tool_trust: tuple[tuple[str, Any], ...] = _is(
        (), "stored", kinds.trust, "a map of tool names to trusted or untrusted",
        "Tools, besides the web, the browser, MCP and unknown ones, whose results are a stranger's text (untrusted),"
        " and those that are trusted all the same, such as an MCP server of your own: mcp__notes__*.",
    )  # fmt: skip

    allowed_themes: tuple[str, ...] = _is(
        (), "themes", kinds.words, "a list of themes", "Themes that may be used; empty allows any."
    )
    identity_aliases: tuple[tuple[str, str], ...] = _is(
        (), "themes", kinds.pairs, "a map, or a=b,c=d", "Session keys and the theme each stands for."
    )
    profile_scope: Literal["shared", "separate"] = _choice(
        "shared", "themes", ("shared", "separate"),
        "Whether the same session key in two profiles is one theme or two.",
    )  # fmt: skip
    cross_theme: Literal["allow", "deny"] = _choice(
        "allow", "themes", ("allow", "deny"),
        "Whether the recall tools reach the other shared themes; private ones are never reached.",
    )  # fmt: skip

    ttl_days: tuple[tuple[str, Any], ...] = _is(
        (), "kept", kinds.days, "a number of days, or a map of turns, memories, history and theme:NAME to days",
        "Days after which the turns this home wrote are deleted; 0 keeps them. A map also says it for memories that"
        " nobody has changed and no other home holds, for the history of memories (365 unless given), and for the turns"
        " of a theme.",
    )  # fmt: skip

    bench_mode: Literal["bucket", "reject"] = _choice(
        "bucket",
        "compatibility",
        ("bucket", "reject"),
        "Benchmark keys go to the theme _bench, or (reject) to default.",
    )
    write_queue_maxsize: int = _integer(256, "compatibility", 1, 10000, "Accepted, without effect.")
    embed_write_timeout: float = _decimal(30.0, "compatibility", 0.1, 600, "Accepted, without effect.")
    shutdown_drain_timeout: float = _decimal(5.0, "compatibility", 0, 30, "Accepted, without effect.")

    # What nobody has had a reason to change.
    pool_max: ClassVar[int] = 4
    tool_budget: ClassVar[float] = 4.0
    batch_records: ClassVar[int] = 256
    batch_embed_seconds: ClassVar[float] = 30.0
    """Seconds one batch of new rows may spend embedding."""
    drain_seconds: ClassVar[float] = 5.0
    """Seconds a clean exit may spend emptying the journal."""
    prefetch_max_chars: ClassVar[int] = 3000
    turn_max_chars: ClassVar[int] = 65536
    memory_max_chars: ClassVar[int] = 8192
    query_max_chars: ClassVar[int] = 2048
    turn_retry_window: ClassVar[float] = 600.0
    """Seconds within which the same words, reported again for a session, count as the same turn."""
    connect_timeout: ClassVar[float] = 3.0

    set_by: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Which layer each value that is not a default comes from."""
    hold: str = ""
    """Why we must not use any database for now: we do not know which one is meant. Empty when we do."""

    def is_set(self, name: str) -> bool:
        """Whether the operator chose this value."""
        return name in self.set_by

    @property
    def journal_max_bytes(self) -> int:
        """The journal's bound in bytes."""
        return self.journal_max_mb * MEBIBYTE

    @property
    def turn_days(self) -> int:
        """For how many days turns are kept; 0 for good."""
        return int(dict(self.ttl_days).get("turns", 0))

    @property
    def memory_days(self) -> int:
        """The same for memories."""
        return int(dict(self.ttl_days).get("memories", 0))

    @property
    def history_days(self) -> int:
        """The same for the history of memories."""
        return int(dict(self.ttl_days).get("history", HISTORY_DAYS))

    @property
    def days_of_themes(self) -> tuple[tuple[str, int], ...]:
        """The same for the turns of themes that have a rule of their own."""
        return tuple((key.removeprefix("theme:"), days) for key, days in self.ttl_days if key.startswith("theme:"))

    @property
    def uses_local_model(self) -> bool:
        """Whether this process computes vectors itself."""
        return self.embed_protocol == "local" or (self.embed_protocol == "auto" and not self.embed_url)

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(self.set_by))})"


DECLARATIONS: dict[str, Declaration] = {
    item.name: item.metadata["declaration"] for item in dataclasses.fields(Settings) if "declaration" in item.metadata
}
WITHOUT_EFFECT = frozenset({"embed_write_retries", "embed_write_backoff"})
"""Names of the published package that are no settings here: files that have them are right."""
DEFAULTS: dict[str, Any] = {
    item.name: item.default for item in dataclasses.fields(Settings) if item.name in DECLARATIONS
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """Settings, and what was wrong with the input."""

    settings: Settings
    problems: tuple[str, ...]
    troubles: tuple[str, ...] = ()
    """What is wrong with the files themselves; meanwhile the settings in force stay."""


def parse(layers: Mapping[str, Mapping[str, Any]], in_force: Settings | None = None) -> Parsed:
    """Settings from named layers, the later ones winning.

    Every wrong value is reported, and what the same layer said before is used in its place, or else the default: a typo
    must not lift a limit.
    """
    values: dict[str, Any] = {}
    set_by: dict[str, str] = {}
    problems: list[str] = []
    for layer, raw in layers.items():
        for name, value in raw.items():
            declaration = DECLARATIONS.get(name)
            if declaration is None:
                continue
            try:
                parsed = declaration.parse(value)
            except (ValueError, TypeError, OverflowError):
                said = "" if declaration.show else _repeated(value)
                is_known = in_force is not None and in_force.set_by.get(name) == layer
                used = "the value in force stays" if is_known else "the default is used"
                problems.append(f"{name} ({layer}): expects {declaration.expects}{said}; {used}")
                if not is_known:
                    continue
                parsed = getattr(in_force, name)
            values[name] = parsed
            if parsed != DEFAULTS[name]:
                set_by[name] = layer
            elif name in set_by:
                del set_by[name]
    return Parsed(Settings(**values, set_by=set_by), tuple(problems))


def accepts(name: str, value: Any) -> bool:
    """Whether a setting can have this value."""
    try:
        DECLARATIONS[name].parse(value)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def unknown_names(raw: Mapping[str, Any]) -> list[str]:
    """Names in a configuration section that no setting has."""
    return sorted(str(name) for name in raw if name not in DECLARATIONS and name not in WITHOUT_EFFECT)


def plain(value: Any) -> Any:
    """A parsed value in the form a configuration file or JSON holds."""
    if isinstance(value, tuple):
        return dict(value) if value and isinstance(value[0], tuple) else list(value)
    return value


def shown(settings: Settings, name: str) -> Any:
    """A current value as anybody may see it: without passwords and keys."""
    value = plain(getattr(settings, name))
    show = DECLARATIONS[name].show
    return value if show is None else show(value)


def is_shown(settings: Settings, name: str, value: Any) -> bool:
    """Whether a value is what `shown` gives for the current one: whoever sends it back has not changed it."""
    return DECLARATIONS[name].show is not None and value == shown(settings, name)


def _repeated(value: Any) -> str:
    """A wrong value as part of a sentence; a long one is left out, since it may be a key in the wrong place."""
    text = repr(value)
    return f", not {text}" if len(text) <= SHORT_CHARS else ""
