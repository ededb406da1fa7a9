"""The theme a session of the host's store belongs to, by the rules that live traffic follows. Pure.

The host records a session key for messaging only. The API server keeps none, so for its sessions the store cannot tell
one theme from another; what our own system prompt says there helps, and what is already stored decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hermes_memory_pgvector.capture import identity
from hermes_memory_pgvector.capture.host_store import MAX_ANCESTORS, HostSession
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.text.names import theme_name
from hermes_memory_pgvector.values import DEFAULT_THEME, is_private_theme

API_SOURCE = "api_server"
_LOCAL_SOURCES = frozenset({"", "acp", "cli", "desktop", "gui", "local", "tui", "unknown", "web"})
"""Where the speaker is whoever owns the home."""
_WORKSPACE = "hermes"
"""What the host calls the workspace of the default profile."""


@dataclass(frozen=True, slots=True)
class SessionTheme:
    """The theme of a session; None when the host did not record with whom it was."""

    theme: str | None
    is_guess: bool = False
    """Whether the session may as well belong to another theme, which a stored turn would show."""
    is_unnamed: bool = False
    """Whether nothing but a stored turn says whose session it is."""
    is_told: bool = False
    """Whether the session's last prompt says so."""


@dataclass(frozen=True, slots=True)
class ThemeRules:
    """What decides the themes of one home's sessions."""

    settings: Settings
    pseudonym_key: Callable[[], bytes]
    profile: str
    is_profile: Callable[[str], bool]
    api_theme: str = ""
    """The theme of API sessions of which nothing tells it, if the operator names one."""

    def theme_of(self, session: HostSession, sessions: Mapping[str, HostSession]) -> SessionTheme:
        """The theme of a session."""
        keyed = _nearest_with_key(session, sessions)
        key = _key(keyed)
        if not key and keyed.source == API_SOURCE:
            return self._api_theme(keyed)
        if not key and keyed.source not in _LOCAL_SOURCES:
            return SessionTheme(None)
        return SessionTheme(self._resolved(key, keyed.thread_id))

    def may_name(self, theme: str) -> bool:
        """Whether a request to this home's API may have a theme: where profiles do not share themes, only its own."""
        if self.settings.profile_scope != "separate" or is_private_theme(theme):
            return True
        if self.profile != DEFAULT_THEME:
            return theme.startswith(identity.separate("", self.profile))
        return theme.startswith(f"{DEFAULT_THEME}/") or identity.separate(theme, self.profile, self.is_profile) == theme

    def _api_theme(self, session: HostSession) -> SessionTheme:
        named = theme_name(session.named_theme)
        if named and not is_private_theme(named):
            return SessionTheme(named, is_guess=True, is_told=True)
        if self.api_theme:
            return SessionTheme(self._resolved(self.api_theme, ""), is_guess=True)
        # Requests with a key and requests without one look alike here, and every key is a wall.
        return SessionTheme(self._resolved("", ""), is_guess=True, is_unnamed=True)

    def _resolved(self, key: str, thread_id: str) -> str:
        arguments = {
            "gateway_session_key": key,
            "thread_id": thread_id,
            "agent_identity": self.profile,
            "agent_workspace": _WORKSPACE,
        }
        found, _ = identity.resolve("", arguments, self.settings, self.pseudonym_key, self.profile, self.is_profile)
        return found.theme


def _nearest_with_key(session: HostSession, sessions: Mapping[str, HostSession]) -> HostSession:
    """The session itself or its nearest ancestor that says with whom it is: what goes on does not always repeat it."""
    current: HostSession | None = session
    for _ in range(MAX_ANCESTORS):
        if current is None:
            break
        if _key(current) or current.named_theme:
            return current
        current = sessions.get(current.parent_id)
    return session


def _key(session: HostSession) -> str:
    if session.key:
        return session.key
    person = session.chat_id or session.user_id
    if not person or session.source in _LOCAL_SOURCES or session.source == API_SOURCE:
        return ""
    # Hosts of before the session key: the key they would have made for a chat with this person.
    return f"agent:main:{session.source}:{session.chat_type or 'dm'}:{person}"
