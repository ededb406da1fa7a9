"""Who is speaking: the host's initialize() arguments become one frozen Session.

Messaging keys contain phone numbers and user ids. Each conversation partner or room gets a stable pseudonym, made with
a key that never leaves this installation: no two people share a theme, and no number is stored or logged.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.text.names import bounded, printable, word
from hermes_memory_pgvector.values import BENCH_THEME, DEFAULT_THEME, Session, is_private_theme

_MESSAGING = re.compile(r"^agent:[^:]*:[^:]*:(?P<type>[^:]+)(?::|$)")
_BARE_MESSAGING = re.compile(
    r"^(?:whatsapp|telegram|signal|sms|discord|slack|matrix|imessage|bluebubbles|email)"
    r":(?:(?P<type>dm|group|channel|thread|forum|room|webhook)(?::|$)|\+?\d{5,})"
)
_NUMBER = re.compile(r"(?:\d[\s().-]*){5}")
"""A display name that may be a phone number or a user id."""
LATIN_1 = "a session key is not UTF-8 and is read as Latin-1; send X-Hermes-Session-Key in UTF-8"
UNATTENDED = ("cron", "subagent")
"""Platforms on which nobody is there who speaks."""
_BENCH = re.compile(r"^(?:.*-)?bench(?:-ws)?$")


@dataclass(frozen=True, slots=True)
class Identity:
    """A theme, and a warning for the operator when the requested theme was not used."""

    theme: str
    warning: str | None = None


def resolve(
    session_id: Any,
    arguments: Mapping[str, Any],
    settings: Settings,
    pseudonym_key: Callable[[], bytes],
    profile: str = "",
    is_profile: Callable[[str], bool] = lambda _: False,
) -> tuple[Session, str | None]:
    """The session behind one initialize() call, and a warning when its theme was replaced.

    `is_profile` tells whether a profile has a given name.
    """
    key, note = header_text(arguments.get("gateway_session_key"))
    own = theme_of(_profile_name(arguments), settings, pseudonym_key)
    if key:
        found = theme_of(key, settings, pseudonym_key, thread_id=word(arguments.get("thread_id")))
        if settings.profile_scope == "separate" and not is_private_theme(found.theme):
            found = Identity(separate(found.theme, profile, is_profile), found.warning)
    else:
        found = own
    platform = printable(word(arguments.get("platform")).casefold())
    # Some hosts run scheduled jobs and subagents in the context of a user.
    context = platform if platform in UNATTENDED else word(arguments.get("agent_context")).casefold()
    session = Session(
        theme=found.theme,
        session_id=word(session_id) or "unknown",
        profile_theme=own.theme,
        parent_session_id=word(arguments.get("parent_session_id")),
        may_write=not context or context in settings.write_contexts,
        platform=platform,
        author=_person(arguments.get("user_id"), pseudonym_key),
    )
    return session, found.warning or note


def header_text(value: Any) -> tuple[str, str | None]:
    """The text of a header, and a note for the operator when it was not sent in UTF-8.

    The host keeps each byte that is no UTF-8 as a lone surrogate; who sends such bytes mostly means Latin-1.
    """
    if not isinstance(value, str) or value.isascii():
        return word(value), None
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        try:
            sent = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return word(value), None
        return word(sent.decode("latin-1")), LATIN_1
    return word(value), None


def theme_of(name: str, settings: Settings, pseudonym_key: Callable[[], bytes], *, thread_id: str = "") -> Identity:
    """The theme a name stands for under the operator's rules."""
    folded = name.strip().casefold()
    if not folded:
        return Identity(DEFAULT_THEME)
    aliases = dict(settings.identity_aliases)
    aliased = folded in aliases
    if aliased:
        folded = aliases[folded]
    elif (pseudonym := _pseudonym(folded, pseudonym_key, thread_id.casefold())) is not None:
        return Identity(pseudonym)
    if _BENCH.match(folded):
        return Identity(BENCH_THEME if settings.bench_mode == "bucket" else DEFAULT_THEME)
    if is_private_theme(folded) and not aliased:
        # A private theme belongs to the person behind it; writing its name into a header does not claim it.
        return Identity(DEFAULT_THEME, "a session key names a private theme; 'default' is used")
    if settings.allowed_themes and not aliased and folded not in (*settings.allowed_themes, DEFAULT_THEME):
        return Identity(DEFAULT_THEME, f"theme {printable(folded)!r} is not in allowed_themes; 'default' is used")
    return Identity(bounded(folded))


def separate(theme: str, profile: str, is_profile: Callable[[str], bool] = lambda _: False) -> str:
    """The theme's name when profiles do not share themes: the profile, a slash, the theme.

    The default profile's themes keep their names, unless a name would read as another profile's.
    """
    if profile and profile != DEFAULT_THEME:
        owner = profile.replace("%", "%25").replace("/", "%2f")
    elif "/" in theme or is_profile(theme):
        owner = DEFAULT_THEME
    else:
        return theme
    return bounded(f"{owner}/{theme}")


def profile_of(arguments: Mapping[str, Any]) -> str:
    """The host profile behind an initialize() call."""
    return word(arguments.get("agent_identity")).casefold()


def person(user_id: Any, key: bytes) -> str:
    """A pseudonym for the person behind a platform's user id."""
    name = word(user_id if isinstance(user_id, str) else str(user_id) if isinstance(user_id, int) else "")
    if not name:
        return ""
    digest = hmac.new(key, f"person:{name.casefold()}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"person-{digest[:20]}"


MAX_AUTHOR_CHARS = 200


def author(told: Any, pseudonym_key: Callable[[], bytes]) -> dict[str, Any]:
    """Who said a turn, as it is stored: a pseudonym, a name unless that is a number, and whether it is a bot."""
    if not isinstance(told, Mapping):
        return {}
    given = told.get("name")
    # Whoever shows a longer name shows nothing that helps, and the hook is not to wait for it.
    name = word(given[:MAX_AUTHOR_CHARS]) if isinstance(given, str) else ""
    name = "" if _NUMBER.search(name) else printable(name)
    found = {"id": _person(told.get("id"), pseudonym_key), "name": name}
    kept: dict[str, Any] = {key: value for key, value in found.items() if value}
    return {**kept, "is_bot": True} if told.get("is_bot") is True else kept


def _person(user_id: Any, pseudonym_key: Callable[[], bytes]) -> str:
    if not user_id:
        return ""
    try:
        return person(user_id, pseudonym_key())
    except ConfigError:
        # Who it was stays unknown rather than being told in clear.
        return ""


def _profile_name(arguments: Mapping[str, Any]) -> str:
    identity = word(arguments.get("agent_identity"))
    if identity and identity.casefold() != DEFAULT_THEME:
        return identity
    return word(arguments.get("agent_workspace")) or DEFAULT_THEME


def _pseudonym(key: str, pseudonym_key: Callable[[], bytes], thread_id: str) -> str | None:
    match = _MESSAGING.match(key) or _BARE_MESSAGING.match(key)
    if match is None:
        return None
    is_direct = match.group("type") in ("dm", None)
    if is_direct and thread_id and key.endswith(":" + thread_id) and key.count(":") > 4:
        # Threads of one direct chat have the same partner.
        key = key[: -len(thread_id) - 1]
    digest = hmac.new(pseudonym_key(), key.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return f"{'dm' if is_direct else 'group'}-{digest[:20]}"
