"""How a hermes-agent after 0.20 calls a memory provider: rules that no published version has yet, and no code of it.

Everything it hands over is masked first; a value that was masked in one place of a hand-over is masked in all of it.
Turns are reported from one worker thread, in order, with who has asked. What a hook raises is swallowed, but for a
checkpoint that the host was told to require.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from hermes_memory_pgvector.provider import PgvectorMemoryProvider

CHECKPOINT_VERSION = 2
_KEY = re.compile(r"\b(sk-\S{3})\S{8,}(\S{4})\b")
_ASSIGNED = re.compile(r"((?:password|api_key)=)(\S+)", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9_\-./+]{16,}")


class NextHost:
    """One agent with its provider."""

    def __init__(self, provider: PgvectorMemoryProvider) -> None:
        self.provider = provider
        self.refused: list[Exception] = []
        """What hooks have raised: a provider of ours never does."""
        self._worker = ThreadPoolExecutor(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._worker.shutdown()
        self._swallow(self.provider.shutdown)

    def turn(self, asked: str, answered: str, messages: Sequence[Mapping[str, Any]] = (), **more: Any) -> None:
        """A turn from its start to its end; `more` is who has asked, as the host calls it in `turn_author`."""
        named = {f"author_{name}": value for name, value in more.items()}
        self._swallow(lambda: _with_what_it_takes(self.provider.on_turn_start, named)(1, masked(asked)))
        self._swallow(lambda: self.provider.prefetch(masked(asked), session_id=""))
        asked, answered, shown = masked([asked, answered, list(messages)])
        optional = {"messages": shown, **({"turn_author": more} if more else {})}
        sync = _with_what_it_takes(self.provider.sync_turn, optional)
        context = contextvars.copy_context()
        report = functools.partial(context.run, sync, asked, answered, session_id="")
        self._worker.submit(self._swallow, report).result()

    def end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """The session ends, or is left for another."""
        self._swallow(lambda: self.provider.on_session_end(masked(list(messages))))

    def compress(
        self, messages: Sequence[Mapping[str, Any]], *, evidence: Sequence[Mapping[str, Any]], require: bool
    ) -> None:
        """Messages are about to be summarised; raises when a checkpoint is required and not given."""
        gives = self.provider.pre_compress_checkpoint_api_version >= CHECKPOINT_VERSION
        named = {"require_checkpoint": require} if gives else {}
        try:
            hook = _with_what_it_takes(self.provider.on_pre_compress, named)
            hook(masked(list(evidence if gives else messages)))
        except Exception as error:
            if require and gives:
                raise
            self.refused.append(error)
        if require and not gives:
            raise RuntimeError("no provider gives checkpoints")

    def wrote(self, target: str, *operations: Mapping[str, str], before: Mapping[int, str] | None = None) -> None:
        """The memory tool has written a batch; `before` has the entries that it replaced or removed, from 1."""
        for number, operation in enumerate(operations, start=1):
            metadata = {"write_origin": "assistant_tool"}
            if operation.get("old_text"):
                metadata["old_text"] = operation["old_text"]
            if number in (before or {}):
                metadata["previous_content"] = (before or {})[number]
            words = operation.get("content") or operation.get("new_text") or ""
            words, metadata = masked([words, metadata])
            hook = functools.partial(self.provider.on_memory_write, operation["action"], target, words)
            self._swallow(functools.partial(hook, metadata=metadata))

    def tool(self, name: str, **arguments: Any) -> Any:
        """The model calls one of the provider's tools."""
        return json.loads(self.provider.handle_tool_call(name, masked(arguments)))

    def _swallow(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            self.refused.append(error)


def masked(value: Any) -> Any:
    """A copy with every text masked."""
    hidden: set[str] = set()

    def hide(text: str) -> str:
        shown = _ASSIGNED.sub(r"\1***", _KEY.sub(r"\1...\2", text))
        hidden.update({*_TOKEN.findall(text)} - {*_TOKEN.findall(shown)})
        return shown

    value = _walk(value, hide)
    for token in sorted((part for each in hidden for part in each.split("=")), key=len, reverse=True):
        if _TOKEN.fullmatch(token):
            value = _walk(value, functools.partial(re.sub, re.escape(token), "[redacted]"))
    return value


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case Mapping():
            return {name: _walk(each, change) for name, each in value.items()}
        case list() | tuple():
            return [_walk(each, change) for each in value]
        case _:
            return value


def _with_what_it_takes(hook: Callable[..., Any], named: Mapping[str, Any]) -> Callable[..., Any]:
    """The hook with those of the arguments that it declares."""
    parameters = inspect.signature(hook).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    return functools.partial(hook, **{name: value for name, value in named.items() if takes_all or name in parameters})
