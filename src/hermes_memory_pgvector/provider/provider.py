"""The MemoryProvider that hermes-agent sees: one short method per hook. The only module that imports the host.

A provider is a light handle on the process's engine: a theme, a session, nothing to shut down. No hook raises, whatever
its arguments. Only prefetch and the tools wait for Postgres or an embedder, within their budgets.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.capture import identity, memory_events
from hermes_memory_pgvector.capture.transcript import CleanUser
from hermes_memory_pgvector.capture.turns import TurnCapture
from hermes_memory_pgvector.config import home as home_identity
from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.config.settings import Settings
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, MemoryPluginError
from hermes_memory_pgvector.hook_guard import guarded, warn_once
from hermes_memory_pgvector.journal import Urgency
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.provider import host_config
from hermes_memory_pgvector.recall import prefetch, retract, tools
from hermes_memory_pgvector.runtime.engine import Engine
from hermes_memory_pgvector.runtime.registry import engine_for
from hermes_memory_pgvector.text.names import session_name
from hermes_memory_pgvector.text.secrets import masker_for
from hermes_memory_pgvector.values import DEFAULT_THEME, LINEAGES, Session

try:
    from agent.memory_provider import MemoryProvider
except ImportError:  # the tour and the tests of this package run without the host
    from hermes_memory_pgvector.provider.hostless import MemoryProvider
try:
    from agent.memory_manager import MemoryManager

    _strip_scaffolding: CleanUser | None = getattr(MemoryManager, "_strip_skill_scaffolding", None)
except ImportError:
    _strip_scaffolding = None
try:
    from hermes_constants import get_hermes_home
except ImportError:
    get_hermes_home = settings_file.default_home

logger = logging.getLogger(__name__)


class PgvectorMemoryProvider(MemoryProvider):
    """Postgres + pgvector behind the host's memory hooks."""

    pre_compress_checkpoint_api_version = 2
    """`on_pre_compress` keeps what `require_checkpoint` asks for."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self._overrides = dict(config) if config else {}
        self._engine: Engine | None = None
        self._home = _home_in_charge()
        _take_scope(self._home)
        self._session = Session(DEFAULT_THEME, "", DEFAULT_THEME)
        self._named = self._session
        self._key: bytes | None = None
        self._started_at = 0.0
        self._spoken: Session | None = None
        """The session of the last turn: the host keeps that turn's transcript, and shows it even in another session."""
        self._block: str | None = None
        self._recalled = 0
        self._unresolved: tuple[Any, dict[str, Any]] | None = None
        """The arguments of initialize, kept until the session is known."""

    @property
    def name(self) -> str:
        """The provider's name in the host's configuration."""
        return settings_file.PROVIDER_NAME

    @property
    def theme(self) -> str:
        """The theme it works for."""
        return self._session.theme

    @guarded(False)
    def is_available(self) -> bool:
        """Whether the provider can be used; reads the configuration, never the network."""
        return not parts.obstacle(self._settings())

    @guarded("")
    def unavailable_reason(self) -> str:
        """Why is_available() is false."""
        return parts.obstacle(self._settings())

    @guarded(None)
    def initialize(self, session_id: str = "", **kwargs: Any) -> None:
        """Find out who is speaking; opens nothing that could make the agent wait."""
        home = kwargs.get("hermes_home")
        self._home = settings_file.absolute(home) if isinstance(home, str) and home else _home_in_charge()
        _take_scope(self._home)
        self._started_at = time.time()
        self._key = None
        self._unresolved = (session_id, kwargs)
        try:
            self._identify(session_id, kwargs)
        except ConfigError as error:
            tell = kwargs.get("warning_callback")
            if callable(tell):
                tell(f"Memory is off in this chat: {error}.")
            raise

    def _identify(self, session_id: Any, kwargs: dict[str, Any]) -> None:
        """Resolve theme and session; until this succeeds, no hook of this provider does anything."""
        self._engine, parsed = engine_for(self._home, self._overrides)
        for problem in parsed.problems:
            warn_once(f"configuration: {problem}")
        session, warning = identity.resolve(
            session_id,
            kwargs,
            parsed.settings,
            self._pseudonym_key,
            identity.profile_of(kwargs),
            functools.partial(home_identity.has_profile, self._home),
        )
        if warning:
            warn_once(warning)
        self._session = replace(
            session,
            session_id=session_name(session.session_id),
            parent_session_id=session_name(session.parent_session_id),
        )
        self._named = self._session
        self._unresolved = None
        self._spoken = None
        self._block = None
        tell = kwargs.get("warning_callback")
        self._engine.begin_session(self._session, tell if callable(tell) else None)
        self._engine.try_start()

    @guarded("")
    def system_prompt_block(self) -> str:
        """A few lines that stay the same, byte for byte, throughout the session."""
        if self._block is None:
            engine = self._current()
            correcting = retract.RETRACT_TOOL if engine.settings.tools == "all" else ""
            self._block = tools.introduction(self._session.theme, engine.degradation(), correcting)
        return self._block

    @guarded("")
    def prefetch(self, query: str, *, session_id: str = "", **_: Any) -> str:
        """What is relevant to the current question."""
        engine = self._current()
        settings = engine.settings
        session = self._session_for(session_id)
        deadline = Deadline.after(settings.prefetch_budget)
        self._recalled = 0
        if not host_config.replays_blocks():
            engine.shown.clear(session)
        try:
            text = prefetch.block(
                query,
                session,
                settings,
                engine.shown,
                search=functools.partial(engine.search, deadline=deadline),
                floor=settings.min_similarity or None,
                shown_by_host=engine.mirror.file_entries(),
                log=engine.recall_log,
            )
        except MemoryPluginError as error:
            logger.debug("prefetch found nothing: %s", error)
            return ""
        self._recalled = text.count("\n- ")
        return text

    @guarded(None)
    def queue_prefetch(self, query: str, *, session_id: str = "", **_: Any) -> None:
        """Does nothing: recall answers the current question, never the last one."""

    @guarded(None)
    def recall_status(self) -> Any:
        """How much was recalled for a turn; newer hosts show it."""
        try:
            from agent.memory_provider import RecallStatus
        except ImportError:
            return None
        return RecallStatus(provider_label="pgvector", count=self._recalled, glyph="◈")

    @guarded({})
    def identity_signature(self) -> dict[str, Any]:
        """The settings that decide which theme a message belongs to; cheap, and callable before initialize."""
        return host_config.identity_signature(self._settings())

    @guarded(None)
    def sync_turn(
        self,
        user_content: Any = "",
        assistant_content: Any = "",
        *,
        session_id: str = "",
        messages: Any = None,
        turn_author: Any = None,
        **_: Any,
    ) -> None:
        """A turn is complete: store what is worth keeping of both sides."""
        try:
            engine = self._current()
        except ConfigError:
            if self._engine is not None:
                # The host's own store has them.
                self._engine.recorder.leave_out(2, time.time())
            raise
        if not self._session.may_write:
            return
        session = self._session_for(session_id)
        if not engine.settings.sync_turns:
            engine.record(self._turns(engine).distrust_memories(session, messages), Urgency.TURN)
            return
        self._spoken = session
        author = identity.author(turn_author, self._pseudonym_key)
        items = self._turns(engine).report(
            session,
            user_content,
            assistant_content,
            messages,
            author or ({"id": session.author} if session.author else {}),
        )
        engine.record(items, Urgency.TURN)

    @guarded(None)
    def on_turn_start(self, turn_number: Any = 0, message: Any = "", **_: Any) -> None:  # noqa: ARG002
        """A turn starts: remember the question, which nobody reports if the user interrupts."""
        self._spoken = self._session
        self._turns(self._current()).begin(self._session, message)

    @guarded(None)
    def on_session_end(self, messages: Any = None, **_: Any) -> None:
        """A session boundary: store what no turn has reported."""
        self._backstop(messages)

    def on_pre_compress(self, messages: Any = None, *, require_checkpoint: bool = False, **_: Any) -> str:
        """Messages are about to be summarised away: store what no turn has reported.

        A host that requires a checkpoint summarises only if this returns: then the disk has all of it. Otherwise an
        error says why not.
        """
        if require_checkpoint:
            self._checkpoint(messages)
        else:
            self._backstop(messages)
        self._forget_what_was_shown()
        return ""

    @guarded(None)
    def _forget_what_was_shown(self) -> None:
        """What is summarised away may be offered again."""
        self._current().shown.clear(self._session)

    def _checkpoint(self, messages: Any) -> None:
        engine = self._current()
        if not engine.settings.sync_turns:
            raise ConfigError("turns are not stored (sync_turns is off), so there is no checkpoint")
        if not self._session.may_write:
            raise ConfigError("this session stores nothing (write_contexts), so there is no checkpoint")
        # Also what an earlier process was to report: whether it did is for the database to tell.
        engine.checkpoint(self._turns(engine).read_transcript(self._session, self._spoken, messages, 0.0))

    @guarded(None)
    def on_session_switch(
        self,
        new_session_id: Any = "",
        *,
        parent_session_id: Any = "",
        reset: bool = False,
        rewound: bool = False,
        **kwargs: Any,
    ) -> None:
        """The agent continues under another session id, or has undone its last exchange."""
        engine = self._current()
        session = self._session
        new_id = session_name(new_session_id) or session.session_id
        old, new = (session.theme, session.session_id), (session.theme, new_id)
        reason = kwargs.get("reason")
        goes_on = not reset and reason != "resume" and bool(parent_session_id or old == new)
        if rewound:
            named = replace(session, session_id=new_id)
            engine.shown.clear(named)
            if session.may_write:
                engine.record(self._turns(engine).undo(named), Urgency.TURN)
        elif goes_on:
            engine.said.continue_as(old, new, is_copy=reason == "branch")
            engine.shown.clear(replace(session, session_id=new_id))
        if new != old:
            self._session = replace(
                session,
                session_id=new_id,
                parent_session_id=session_name(parent_session_id),
                lineage=LINEAGES.get(reason, "") if isinstance(reason, str) else "",
            )
            if goes_on and self._spoken == session:
                self._spoken = self._session

    @guarded(None)
    def on_memory_write(
        self, action: Any = "", target: Any = "", content: Any = "", metadata: Any = None, **_: Any
    ) -> None:
        """The memory tool has written an entry: store it."""
        engine = self._current()
        operations = memory_events.memory_operations(
            action,
            target,
            content,
            metadata,
            session=self._session,
            when=engine.clock.now(),
            home_id=engine.home_id,
            max_chars=engine.settings.memory_max_chars,
            file=engine.mirror.news,
        )
        if self._session.may_write:
            engine.record(operations, Urgency.MEMORY)

    @guarded(None)
    def on_delegation(self, task: Any = "", result: Any = "", *, child_session_id: Any = "", **_: Any) -> None:
        """A subagent has finished: store who delegated to whom, and the work as a turn that can be recalled."""
        engine = self._current()
        if self._session.may_write:
            items = memory_events.delegation(
                task, result, child_session_id, self._session, engine.clock.now(), engine.settings, engine.home_id
            )
            engine.record(items, Urgency.TURN)

    @guarded([])
    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The recall tools and, unless the operator leaves it out, the one that corrects them."""
        return tools.schemas() + ([retract.schema()] if self._settings().tools == "all" else [])

    @guarded('{"error": "The memory could not answer."}')
    def handle_tool_call(self, tool_name: Any, args: Any = None, **_: Any) -> str:
        """Answer a tool, as JSON."""
        engine = self._current()
        settings = engine.settings
        deadline = Deadline.after(settings.tool_budget)
        if tool_name == retract.RETRACT_TOOL and settings.tools == "all":
            changing = functools.partial(engine.pool.transaction, deadline, theme=self._session.theme)
            return retract.answer(args, self._session, changing, masker_for(settings.mask_secrets), engine.home_id)
        return tools.answer(
            tool_name if isinstance(tool_name, str) else "",
            args,
            self._session,
            settings,
            search=engine.recall_log.listening(self._session, functools.partial(engine.search, deadline=deadline)),
        )

    @guarded(None)
    def shutdown(self) -> None:
        """Give the last turn a moment to be stored; nothing depends on it."""
        if self._engine is not None and not self._engine.is_retired:
            self._engine.flush(Deadline.after(self._engine.settings.drain_seconds))

    @guarded([])
    def get_config_schema(self) -> list[dict[str, Any]]:
        """The settings that the host's wizard and dashboard show, with the values in force."""
        return host_config.schema(self._settings())

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Write what differs from the values in force; a wrong value is an error the operator sees."""
        host_config.save(Path(hermes_home), values)

    @guarded({})
    def get_status_config(self, provider_config: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """What `hermes memory status` prints; never a password."""
        return host_config.status(self._settings(), self._home)

    def post_setup(self, hermes_home: str, config: Any = None) -> None:  # noqa: ARG002
        """The setup wizard: prompts, tests, migrates and activates."""
        from hermes_memory_pgvector.ops.setup import wizard

        wizard.run(Path(hermes_home))

    @guarded([])
    def backup_paths(self) -> list[str]:
        """Paths outside the home that belong to it: a fresh dump of the embedded database."""
        return host_config.backup_paths(self._home, self._settings())

    def _pseudonym_key(self) -> bytes:
        try:
            if self._key is None:
                self._key = home_identity.pseudonym_key(self._home)
            return self._key
        except ConfigError as error:
            raise ConfigError(f"{error}; without it no theme is chosen") from None
        except (OSError, ValueError) as error:
            reason = f"the key for pseudonyms cannot be read ({type(error).__name__})"
            raise ConfigError(f"{reason}; without it no theme is chosen") from None

    def _current(self) -> Engine:
        if self._unresolved is not None:
            self._identify(*self._unresolved)
        if self._engine is None or self._engine.is_retired:
            self._engine, _ = engine_for(self._home, self._overrides)
            self._engine.begin_session(self._session)
        return self._engine

    def _turns(self, engine: Engine) -> TurnCapture:
        return TurnCapture(engine.settings, engine.clock, engine.said, _strip_scaffolding, engine.home_id)

    def _settings(self) -> Settings:
        """The configuration in force, read now."""
        return settings_file.load(self._home, self._overrides, is_hasty=True).settings

    def _session_for(self, session_id: Any) -> Session:
        """The session a call is about: the one it names, otherwise that of initialize."""
        session = self._session
        if session_id == session.session_id:
            return session
        if session_id == self._named.session_id and self._named.theme == session.theme:
            return self._named
        named = session_name(session_id)
        if not named or named == session.session_id:
            return session
        self._named = replace(session, session_id=named, parent_session_id="")
        return self._named

    @guarded(None)
    def _backstop(self, messages: Any) -> None:
        """Store the turns of a transcript that no hook has reported."""
        engine = self._current()
        if not engine.settings.sync_turns or not self._session.may_write or messages is None:
            return
        items = self._turns(engine).read_transcript(self._session, self._spoken, messages, self._started_at)
        engine.record(items, Urgency.TURN)


def _home_in_charge() -> Path:
    """The home that the host works for here: in a request about a profile that is the profile's."""
    try:
        return settings_file.absolute(get_hermes_home())
    except RuntimeError:
        return settings_file.default_home()


def _take_scope(home: Path) -> None:
    """Learn which variables the host keeps for this home and no other."""
    is_one_of_several = False
    try:
        from agent import secret_scope

        is_one_of_several = secret_scope.is_multiplex_active()
        scope: Mapping[str, Any] | None = secret_scope.current_secret_scope()
        if scope is None and is_one_of_several:
            scope = secret_scope.build_profile_secret_scope(home)
        # What stands in .env, too, is read there: it may be changed, or taken out, and the host's own reader may take
        # the comment behind a value, or the sign before a quote, for part of it.
        typed = {} if scope is None else secret_scope.load_env_file(home / ".env")
        told = (
            None if scope is None else {str(name): str(scope[name]) for name in scope if typed.get(name) != scope[name]}
        )
    except Exception:  # noqa: BLE001 - a host without scopes, or one whose scope cannot be told
        told = None
    settings_file.take_scope(home, told, is_one_of_several=is_one_of_several)
