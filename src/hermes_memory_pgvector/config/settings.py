"""Every setting, declared once.

The parser, the host's configuration schema, the reference page and `config show` all come from these lines. Parsing
never raises: it reports every wrong value by name and uses the default instead.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes_memory_pgvector.config import cross_theme as cross_themes

TRUE_WORDS = frozenset({"true", "yes", "on", "1"})
FALSE_WORDS = frozenset({"false", "no", "off", "0"})
MEBIBYTE = 1024 * 1024
SHORT_CHARS = 14
"""Error messages repeat a wrong value up to this length."""

Parser = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is known about one setting."""

    help: str
    parse: Parser
    choices: tuple[str, ...] = ()
    in_wizard: bool = False
    """Whether the host's setup wizard and dashboard ask for it."""
    secret: bool = False
    expects: str = ""
    show: Callable[[Any], Any] | None = None
    """How to show a value that may hold a password or a key; None for one that cannot."""
    is_rare: bool = False
    """Read because existing configurations may have it; no operator needs it, so `config show` leaves it out."""


REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""How a value in a file names a variable."""
_HIDDEN = "***"
_NAMED = r"(?P<head>\b(?:password|sslpassword|passfile)\s*=\s*)"
_NAMED_IN_QUERY = re.compile(_NAMED + r"[^&]+", re.IGNORECASE)
_KEYWORD = (
    r"(?:host|port|user|dbname|service|options|replication|client_|application_|fallback_|connect_|tcp_|target_|require"
    r"|channel_|load_|keepalives|ssl|gss|krb|pass)\w*"
)
# Up to the next keyword: a password that should have been quoted may have spaces.
_NAMED_IN_WORDS = re.compile(_NAMED + rf"(?:'(?:[^'\\]|\\.)*')?.*?(?=\s+{_KEYWORD}\s*=|$)", re.IGNORECASE | re.DOTALL)
# Up to the last @: a password that should have been percent-encoded may hold anything.
_LOGIN_PASSWORD = re.compile(r"(?P<head>^[^:]*://[^:/@?]*:).*(?=@)", re.DOTALL)
_LOGIN = re.compile(r"(?P<head>^[^:/@]*://)?.*(?=@)", re.DOTALL)
_HARMLESS_QUERY = frozenset({"api-version", "version", "v"})
_KIND = re.compile(r"[a-z][a-z0-9-]{0,39}")
_CONVENTIONAL_NAME = re.compile(r"[A-Z_][A-Z0-9_]*|[a-z_]+")


def redact_dsn(dsn: str) -> str:
    """The connection string without its password."""
    if "://" in dsn:
        return _NAMED_IN_QUERY.sub(rf"\g<head>{_HIDDEN}", _LOGIN_PASSWORD.sub(rf"\g<head>{_HIDDEN}", dsn))
    return _NAMED_IN_WORDS.sub(rf"\g<head>{_HIDDEN}", dsn)


def redact_url(url: str) -> str:
    """The address of an endpoint without a login and without the values of its query, which may be keys."""
    address, mark, query = url.partition("#")[0].partition("?")
    # An @ may begin a part of a path; anywhere else something before it may be a password.
    if re.search(r"(?<!/)@|//@|[?#].*@", url):
        bare = _LOGIN.sub(lambda match: f"{match['head'] or ''}{_HIDDEN}", url, count=1)
        return re.split(r"[?#]", bare, maxsplit=1)[0]
    pairs = (part.partition("=") for part in query.split("&"))
    harmless = (
        f"{name}={value if name in _HARMLESS_QUERY else _HIDDEN}" if has else _HIDDEN for name, has, value in pairs
    )
    return f"{address}{mark}{'&'.join(harmless) if mark else ''}"


def redact_variable(name: str) -> str:
    """The name of a variable; hides what does not look like one, since it may be the key itself."""
    return name if not name or _CONVENTIONAL_NAME.fullmatch(name) else _HIDDEN


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    raise ValueError


def _number(kind: type[int] | type[float], at_least: float | None, at_most: float | None) -> Parser:
    def parse(value: Any) -> int | float:
        if isinstance(value, bool):
            raise ValueError  # noqa: TRY004 - one kind of refusal for every wrong value
        number = kind(value.strip() if isinstance(value, str) else value)
        if isinstance(value, float) and kind is int and number != value:
            raise ValueError
        if (
            number != number
            or (at_least is not None and number < at_least)
            or (at_most is not None and number > at_most)
        ):
            raise ValueError
        return number

    return parse


def _optional_integer(at_least: int, at_most: int) -> Parser:
    inner = _number(int, at_least, at_most)

    def parse(value: Any) -> int | None:
        if value is None or str(value).strip().lower() in ("", "none", "auto", "0"):
            return None
        return int(inner(value))

    return parse


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str | int | float):
        raise ValueError  # noqa: TRY004
    return str(value).strip()


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        parts = value.split(",")
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [str(part) for part in value]
    else:
        raise ValueError  # noqa: TRY004
    return tuple(dict.fromkeys(part.strip().casefold() for part in parts if part.strip()))


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, Mapping):
        items = [(str(key), str(name)) for key, name in value.items()]
    elif isinstance(value, str):
        items = []
        for part in filter(None, (piece.strip() for piece in value.split(","))):
            key, equals, name = part.partition("=")
            if not equals:
                raise ValueError
            items.append((key, name))
    else:
        raise ValueError  # noqa: TRY004
    pairs = tuple((key.strip().casefold(), name.strip().casefold()) for key, name in items)
    if any(not key or not name for key, name in pairs):
        raise ValueError
    return pairs


EMBEDDER_PARTS = ("url", "model", "dim", "protocol", "api_key_env")
"""What describes an embedder: the settings embed_url, embed_model and so on, and the keys of `embed_next`."""


def _embedder(value: Any) -> tuple[tuple[str, str], ...]:
    """An embedder that is described in one value; what it leaves out is as in the settings of the one in use."""
    if not value:
        return ()
    if isinstance(value, tuple):
        value = dict(value)
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(equals for _, equals, _ in pairs):
            raise ValueError
        value = {key.strip(): text for key, _, text in pairs}
    if not isinstance(value, Mapping) or not set(value) <= set(EMBEDDER_PARTS):
        raise ValueError
    told = {name: DECLARATIONS[f"embed_{name}"].parse(value[name]) for name in EMBEDDER_PARTS if name in value}
    return tuple((name, str(part)) for name, part in told.items() if part is not None)


def _show_embedder(value: Any) -> Any:
    """What may be shown of a described embedder."""
    if isinstance(value, str):
        return redact_url(value) if "@" in value else value
    if not isinstance(value, Mapping):
        return value
    shows = {name: DECLARATIONS[f"embed_{name}"].show for name in value}
    return {name: part if (show := shows[name]) is None else show(part) for name, part in value.items()}


def _days(value: Any) -> tuple[tuple[str, int], ...]:
    parse = _number(int, 0, 36500)
    return tuple((theme, int(parse(days))) for theme, days in _pairs(value))


def _rules(value: Any) -> tuple[tuple[str, str], ...]:
    if value is None or value == "":
        return ()
    if not isinstance(value, Mapping):
        raise ValueError  # noqa: TRY004
    rules = tuple((str(kind), str(pattern)) for kind, pattern in value.items())
    for kind, pattern in rules:
        if not _KIND.fullmatch(kind):
            raise ValueError
        try:
            is_empty = re.compile(pattern).match("") is not None
        except (re.error, RecursionError):
            raise ValueError from None
        if is_empty:
            # It would find something everywhere.
            raise ValueError
    return rules


def _choice(*choices: str) -> Parser:
    def parse(value: Any) -> str:
        word = str(value).strip().lower()
        if word not in choices:
            raise ValueError
        return word

    return parse


def _declare(default: Any, declaration: Declaration) -> Any:
    return field(default=default, metadata={"declaration": declaration})


def flag(default: bool, help: str, *, rare: bool = False) -> Any:
    """A yes/no setting."""
    return _declare(default, Declaration(help, _boolean, expects="true or false", is_rare=rare))


def integer(default: int, help: str, *, at_least: int, at_most: int, wizard: bool = False, rare: bool = False) -> Any:
    """A whole number within bounds."""
    parse, expects = _number(int, at_least, at_most), f"a whole number from {at_least} to {at_most}"
    return _declare(default, Declaration(help, parse, in_wizard=wizard, expects=expects, is_rare=rare))


def decimal(default: float, help: str, *, at_least: float, at_most: float, rare: bool = False) -> Any:
    """A number within bounds."""
    parse, expects = _number(float, at_least, at_most), f"a number from {at_least:g} to {at_most:g}"
    return _declare(default, Declaration(help, parse, expects=expects, is_rare=rare))


def choice(default: str, help: str, *choices: str, rare: bool = False) -> Any:
    """One of a few words."""
    expects = "one of " + ", ".join(choices)
    return _declare(default, Declaration(help, _choice(*choices), choices, expects=expects, is_rare=rare))


def text(
    default: str,
    help: str,
    *,
    wizard: bool = False,
    secret: bool = False,
    show: Callable[[str], str] | None = None,
) -> Any:
    """Free text."""
    return _declare(default, Declaration(help, _text, in_wizard=wizard, secret=secret, expects="text", show=show))


@dataclass(frozen=True, slots=True)
class Settings:
    """The current configuration."""

    dsn: str = text(
        "",
        "Postgres connection string; empty means the embedded server of this home.",
        wizard=True,
        secret=True,
        show=redact_dsn,
    )
    embed_url: str = text(
        "",
        "Embedding endpoint (OpenAI-compatible or Ollama); empty means the local model.",
        wizard=True,
        show=redact_url,
    )
    embed_model: str = text("nomic-embed-text", "Model the embedding endpoint should use.", wizard=True)
    embed_dim: int | None = _declare(
        None,
        Declaration(
            "Dimension of the model's vectors; empty takes it from the model or asks the endpoint.",
            _optional_integer(1, 4000),
            expects="a whole number from 1 to 4000, or empty",
        ),
    )
    embed_protocol: Literal["auto", "openai", "ollama", "local"] = choice(
        "auto", "Protocol of the endpoint; auto detects it once.", "auto", "openai", "ollama", "local"
    )
    embed_api_key_env: str = text(
        "", "Name of the environment variable that holds the endpoint's key.", wizard=True, show=redact_variable
    )
    embed_next: tuple[tuple[str, str], ...] = _declare(
        (),
        Declaration(
            "The embedder to use once the database's vectors are of its model; set by `reembed`, and beforehand on the"
            " other machines of a fleet.",
            _embedder,
            expects="a map of url, model, dim, protocol and api_key_env, or model=...,url=...",
            show=_show_embedder,
        ),
    )
    embed_on_write: bool = flag(True, "Embed new rows; false leaves them to keyword search and `backfill`.")
    conversation_embed_policy: Literal["all", "substantive_only", "none"] = choice(
        "all", "Which turns get a vector: all, only long ones, or none.", "all", "substantive_only", "none"
    )
    embed_timeout: float = decimal(
        5.0, "Seconds a recall may spend embedding its question, within its own budget.", at_least=0.05, at_most=7
    )
    embed_write_timeout: float = decimal(
        30.0, "Seconds one batch of new rows may spend embedding.", at_least=0.1, at_most=600, rare=True
    )

    prefetch_limit: int = integer(5, "Memories offered per turn.", at_least=1, at_most=50, wizard=True)
    prefetch_sources: Literal["memories", "both"] = choice(
        "both", "What is offered before a turn: memories only, or past turns too.", "memories", "both"
    )
    prefetch_trust: Literal["all", "trusted", "strict"] = choice(
        "trusted",
        "What is offered unasked: all, nothing from turns that used untrusted tools, or (strict) nothing from"
        " subagents and from what was said after such a turn either.",
        "all",
        "trusted",
        "strict",
    )
    prefetch_budget: float = decimal(2.0, "Seconds a prefetch may take.", at_least=0.05, at_most=7.5)
    prefetch_max_chars: int = integer(2000, "Characters a prefetch may inject.", at_least=200, at_most=20000)
    min_similarity: float = decimal(
        0.30,
        "How similar a memory must be to be offered; unset uses the minimum calibrated for the model.",
        at_least=0.0,
        at_most=1.0,
    )
    hybrid_search: bool = flag(True, "Search by keywords as well as by meaning.")
    recall_log: bool = flag(True, "Keep ids, scores and times of the last answers of recall, for `why`.")
    recall_log_text: bool = flag(False, "Keep the questions in that log, too.")
    mask_secrets: bool = flag(True, "Mask keys, tokens and passwords before anything is stored or embedded.")
    secret_rules: tuple[tuple[str, str], ...] = _declare(
        (),
        Declaration(
            "Secrets of your own: a kind and a regular expression for each; a group named secret is the part to mask.",
            _rules,
            expects="a map of kinds (lower case, digits, hyphens) to regular expressions that match no empty text",
        ),
    )
    history_days: int = integer(
        365, "Days for which the history of memories is kept; 0 keeps it for good.", at_least=0, at_most=36500
    )
    exact: bool = flag(False, "Compare every vector of the theme instead of re-ranking the best candidates.", rare=True)
    recency_half_life_days: float = decimal(
        0.0, "Days after which age halves a hit's weight; 0 ignores age.", at_least=0.0, at_most=36500
    )
    scope_default: str = text("current", "Scope of the recall tools when the model gives none: current or all.")
    cross_theme: str = _declare(
        cross_themes.ALLOW,
        Declaration(
            "What the recall tools reach beyond their own theme: allow, deny, or a list of themes for each reader "
            "(a map, or reader=a|b,other=c; * stands for anybody or anything). Private themes are never reached.",
            cross_themes.parse,
            expects="allow, deny, or a map of readers to themes",
        ),
    )
    tool_budget: float = decimal(4.0, "Seconds a recall tool may take.", at_least=0.1, at_most=60)

    sync_turns: bool = flag(True, "Store conversation turns.")
    turn_min_chars: int = integer(40, "Shorter turns are not stored.", at_least=0, at_most=100000)
    turn_max_chars: int = integer(65536, "Longer turns are cut, with a marker.", at_least=1000, at_most=1000000)
    memory_max_chars: int = integer(8192, "Longer memories are cut, with a marker.", at_least=500, at_most=1000000)
    query_max_chars: int = integer(2048, "Longer questions are cut.", at_least=100, at_most=100000, rare=True)
    bulk_sync_on_init: bool = flag(True, "Mirror MEMORY.md and USER.md of this home.")
    write_contexts: tuple[str, ...] = _declare(
        ("primary", "cron"),
        Declaration("Agent contexts that may write; others only recall.", _words, expects="a list of words"),
    )
    untrusted_tools: tuple[str, ...] = _declare(
        (),
        Declaration(
            "Tools, besides the web, the browser, MCP and unknown ones, whose results are a stranger's text; * stands"
            " for any ending.",
            _words,
            expects="a list of tool names",
        ),
    )
    trusted_tools: tuple[str, ...] = _declare(
        (),
        Declaration(
            "Tools whose results are trusted all the same, such as an MCP server of your own: mcp__notes__*.",
            _words,
            expects="a list of tool names",
        ),
    )
    turn_retry_window: float = decimal(
        600.0,
        "Seconds within which the same words, reported again for a session, count as the same turn.",
        at_least=0,
        at_most=86400,
        rare=True,
    )

    allowed_themes: tuple[str, ...] = _declare(
        (), Declaration("Themes that may be used; empty allows any.", _words, expects="a list of themes")
    )
    identity_aliases: tuple[tuple[str, str], ...] = _declare(
        (), Declaration("Session keys and the theme each stands for.", _pairs, expects="a map, or a=b,c=d")
    )
    bench_mode: Literal["bucket", "reject"] = choice(
        "bucket", "Benchmark keys go to the theme _bench, or (reject) to default.", "bucket", "reject", rare=True
    )
    profile_scope: Literal["shared", "separate"] = choice(
        "shared", "Whether the same session key in two profiles is one theme or two.", "shared", "separate"
    )

    own_server: bool = flag(False, "Give this profile an embedded Postgres of its own instead of the root home's.")
    journal_sync: Literal["process", "batch", "always"] = choice(
        "batch",
        "What an acknowledged write survives; see docs/explanation/durability.md.",
        "process",
        "batch",
        "always",
    )
    journal_max_mb: int = integer(256, "Megabytes the journal may hold.", at_least=1, at_most=1048576)
    write_queue_maxsize: int = integer(
        256, "Records the writer takes into one batch.", at_least=1, at_most=10000, rare=True
    )
    shutdown_drain_timeout: float = decimal(
        5.0, "Seconds a clean exit may spend emptying the journal.", at_least=0, at_most=30
    )
    pool_max: int = integer(4, "Connections one process may hold.", at_least=1, at_most=64)
    connect_timeout: float = decimal(3.0, "Seconds a connection attempt may take.", at_least=0.1, at_most=60, rare=True)
    ttl_days: int = integer(
        0,
        "Days after which the turns this home wrote are deleted; 0 keeps them.",
        at_least=0,
        at_most=36500,
    )
    ttl: tuple[tuple[str, int], ...] = _declare(
        (),
        Declaration(
            "Themes with a rule of their own, and the days after which this home's turns there are deleted; 0 keeps"
            " them.",
            _days,
            expects="a map of themes to days, or a=30,b=0",
        ),
    )
    memory_ttl_days: int = integer(
        0,
        "Days after which memories that nobody has changed and no other home holds are deleted, in the themes this home"
        " writes to; 0 keeps them.",
        at_least=0,
        at_most=36500,
    )

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
    def uses_local_model(self) -> bool:
        """Whether this process computes vectors itself."""
        return self.embed_protocol == "local" or (self.embed_protocol == "auto" and not self.embed_url)

    @property
    def next_embedder(self) -> Settings | None:
        """These settings with the embedder that `embed_next` describes; None where it describes none.

        An address of its own brings its own protocol and key: a key goes nowhere it was not meant for.
        """
        if not self.embed_next:
            return None
        told = dict(self.embed_next)
        has_place = "url" in told or told.get("protocol") == "local"
        former = {} if has_place else {"url": self.embed_url, "api_key_env": self.embed_api_key_env}
        parts = {"model": self.embed_model, "protocol": "auto" if has_place else self.embed_protocol, **former, **told}
        values = {
            f"embed_{name}": DECLARATIONS[f"embed_{name}"].parse(parts.get(name, DEFAULTS[f"embed_{name}"]))
            for name in EMBEDDER_PARTS
        }
        return dataclasses.replace(self, **values, embed_next=())

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(self.set_by))})"


DECLARATIONS: dict[str, Declaration] = {
    item.name: item.metadata["declaration"] for item in dataclasses.fields(Settings) if "declaration" in item.metadata
}
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
            if name == "min_similarity":
                # Its default means "as calibrated", so writing 0.30 down is a choice like any other.
                set_by[name] = layer
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
    return sorted(str(name) for name in raw if name not in DECLARATIONS)


def plain(value: Any) -> Any:
    """A parsed value in the form a configuration file or JSON holds."""
    if isinstance(value, tuple):
        if value and isinstance(value[0], tuple):
            return {key: name for key, name in value}  # noqa: C416 - pairs of a tuple, not an existing mapping
        return list(value)
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
