"""`try`: a tour of the real provider in a temporary home. Needs no hermes."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_memory_pgvector.config.settings_file import ENVIRONMENT_PREFIX, PROVIDER_NAME, data_folder, load, update
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, DatabaseUnavailable
from hermes_memory_pgvector.ops import migration, parts
from hermes_memory_pgvector.ops.memory import Memory
from hermes_memory_pgvector.terminal import ending, progress
from hermes_memory_pgvector.terminal.amounts import seconds
from hermes_memory_pgvector.terminal.fields import aside
from hermes_memory_pgvector.terminal.operation import Course, Facts, Note, Operation, Option, command

if TYPE_CHECKING:
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider

Notes = Iterator[Note | str]
SERVER_SECONDS = 180.0
STORE_SECONDS = 30.0
MEMORIES = {
    "marketing": [
        ("memory", "The spring campaign starts on 4 May with a budget of 12,000 euros."),
        ("user", "Ada writes the newsletter and prefers short sentences."),
    ],
    "workshop": [
        ("memory", "The lathe needs new bearings; the part number is SKF-6203."),
        ("user", "Bram is left-handed: the tools hang on the left wall."),
    ],
}
TURNS = {
    "marketing": (
        "Should we put the discount code into the subject line of the newsletter?",
        "No: mails with a code in the subject line were opened less often, so it goes into the first paragraph.",
    ),
    "workshop": (
        "How tight do the wheel bolts of the trailer have to be?",
        "Tighten the wheel bolts of the trailer to 90 newton metres, and check them again after fifty kilometres.",
    ),
}


@dataclass(frozen=True, slots=True)
class Toured(Facts):
    """That the tour is over."""

    seconds: float
    notes: tuple[Note, ...] = aside(())


def tour(_memory: Memory, *, ui: bool, open: bool) -> Course:
    """Show writing, recall and the walls between themes; or the page of what was written."""
    return Course(_tour(serves=ui or open, opens=open))


def _tour(*, serves: bool, opens: bool) -> Generator[Note | str, None, Toured]:
    started = time.perf_counter()
    for name in [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)]:
        # Whatever the environment says, the tour never touches a real database.
        del os.environ[name]
    yield "A tour of the pgvector memory, in a temporary home"
    with _home() as (home, notes):
        yield from notes
        agents = {theme: _agent(home, theme) for theme in MEMORIES}
        yield from _written(agents)
        yield from _stored(home)
        if serves:
            yield from _page(home, opens=opens)
        else:
            yield from _prefetched(agents)
            yield from _tools(agents)
            yield from _walls(agents)
        for agent in agents.values():
            agent.shutdown()
    took = time.perf_counter() - started
    done = Note("ok", f"Done in {seconds(took)}; the temporary home is removed")
    return Toured(round(took, 1), (done, Note("note", "to give your own agent this memory", then=command("up"))))


def _page(home: Path, *, opens: bool) -> Notes:
    """Serve the page of what was written."""
    from hermes_memory_pgvector.ops.setup import plugin_folder
    from hermes_memory_pgvector.web.server import PageServer
    from hermes_memory_pgvector.web.serving import serving

    # As in a home that is set up, so that the page's checks have nothing to say.
    plugin_folder.install(home)
    update(home, ("memory",), {"provider": PROVIDER_NAME})
    server = PageServer(home, "127.0.0.1", 0)
    try:
        with ending.in_peace():
            for served in serving(server, opens=opens):
                yield Note("ok", f"The memory page: {served.url}", served.advice)
    finally:
        server.server_close()


@contextmanager
def _home() -> Iterator[tuple[Path, list[Note]]]:
    """A home with a database of its own, and what was done for it; both are gone at the end."""
    from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="hermes-pgvector-try-") as name:
        home = Path(name)
        settings = load(home).settings
        problem = parts.obstacle(settings)
        if problem:
            raise ConfigError(problem)
        server = EmbeddedPostgres(data_folder(home), extra_settings={"fsync": "off", "shared_buffers": "32MB"})
        try:
            with progress.shown("database") as database:
                info = server.ensure_running(Deadline.after(SERVER_SECONDS))
                database.said.append(f"Postgres {server.status().binaries_version} with pgvector, started")
            with progress.shown("schema") as schema:
                wanted = migration.wanted_model(home, settings)
                if wanted.spec is None:
                    raise ConfigError(wanted.problem)
                migration.apply(info.owner_dsn, RUNTIME_ROLE, wanted.spec, adopt_model=wanted.spec.name)
                schema.said.append("created")
            yield home, [database.note, schema.note]
        finally:
            try:
                # Whatever ended the tour, an engine that goes on would start the server again.
                _close()
            finally:
                server.stop(Deadline.after(60), mode="immediate")


def _agent(home: Path, theme: str) -> PgvectorMemoryProvider:
    """A provider as the host creates it for a chat with that session key."""
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider

    agent = PgvectorMemoryProvider()
    agent.initialize(f"{theme}-monday", hermes_home=str(home), gateway_session_key=theme, platform="api_server")
    return agent


def _written(agents: dict[str, PgvectorMemoryProvider]) -> Notes:
    yield "Two themes, marketing and workshop, write memories"
    for theme, agent in agents.items():
        entries = MEMORIES[theme]
        user, assistant = TURNS[theme]
        started = time.perf_counter()
        for target, content in entries:
            agent.on_memory_write("add", target, content)
        agent.sync_turn(user, assistant, session_id=f"{theme}-monday")
        took = time.perf_counter() - started
        for content in (*(content for _, content in entries), assistant):
            yield _quoted(theme, content)
        told = f"{len(entries)} memories and 2 turns acknowledged, safe on disk, in {took * 1e6:,.0f} µs"
        yield Note("ok", told)


def _stored(home: Path) -> Notes:
    from hermes_memory_pgvector.runtime.registry import engine_for

    with progress.shown("stored") as step:
        engine, _ = engine_for(home)
        if not engine.flush(Deadline.after(STORE_SECONDS)):
            raise DatabaseUnavailable(engine.writer.last_error or "the vectors were not ready in time")
        step.said.append("in Postgres, and embedded")
    yield step.note


def _prefetched(agents: dict[str, PgvectorMemoryProvider]) -> Notes:
    yield "Before each answer, an agent is given relevant memories"
    for theme, question in (
        ("marketing", "How much money may the campaign in spring cost?"),
        ("workshop", "Which replacement part does the lathe need?"),
    ):
        yield _quoted(theme, f"asked: {question}")
        with progress.shown("recalled") as step:
            block = agents[theme].prefetch(question)
        yield step.note
        yield from (_quoted("", line[2:]) for line in block.splitlines() if line.startswith("- "))


def _tools(agents: dict[str, PgvectorMemoryProvider]) -> Notes:
    yield "It can also search with two tools"
    calls = (
        ("marketing", "recall_memory", {"query": "who is responsible for the newsletter"}),
        ("workshop", "recall_conversation", {"query": "torque for fastening the wheels", "limit": 1}),
    )
    for theme, tool, arguments in calls:
        with progress.shown(theme) as step:
            answer = json.loads(agents[theme].handle_tool_call(tool, arguments))
            step.said.append(f"{tool}: {arguments['query']}")
        yield step.note
        for hit in answer["results"][:1]:
            score = "words" if hit["score"] is None else f"{hit['score']:.2f}"
            yield _quoted(score, hit["content"])


def _walls(agents: dict[str, PgvectorMemoryProvider]) -> Notes:
    yield "Themes do not see each other's memories"
    query = {"query": "SKF-6203 lathe bearings part number"}
    for theme in agents:
        answer = json.loads(agents[theme].handle_tool_call("recall_memory", query))
        seen = [hit for hit in answer["results"] if "SKF-6203" in hit["content"]]
        is_right = bool(seen) == (theme == "workshop")
        told = f"{theme} asks for the lathe's part: {'found' if seen else 'nothing found'}"
        yield Note("ok" if is_right else "problem", told)
    answer = json.loads(agents["marketing"].handle_tool_call("recall_memory", {**query, "scope": "workshop"}))
    found = any("SKF-6203" in hit["content"] for hit in answer["results"])
    yield Note("ok" if found else "problem", "marketing asks again and names the other theme: found")


def _close() -> None:
    from hermes_memory_pgvector.runtime.registry import close_all

    close_all(Deadline.after(5))


def _quoted(who: str, text: str) -> Note:
    return Note("note", f"{who:>11}  {text}")


TRY: Final = Operation(
    "try",
    "take a short tour that leaves nothing behind",
    (
        Option("--ui", "serve the memory page of what the tour writes", is_flag=True),
        Option("--open", "with the page: open your browser", is_flag=True),
    ),
    tour,
    (
        ("try", "a few seconds, in a temporary home"),
        ("try --ui --open", "the memory page of what the tour wrote, in your browser"),
    ),
    group="set up",
    on_page=False,
    needs_home=False,
)
