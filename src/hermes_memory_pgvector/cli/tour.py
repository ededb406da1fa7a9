"""`try`: a tour of the real provider in a temporary home. Needs no hermes."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.config.settings_file import ENVIRONMENT_PREFIX, PROVIDER_NAME, data_folder, load, update
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, DatabaseUnavailable, UsageError
from hermes_memory_pgvector.ops import migration as database
from hermes_memory_pgvector.ops import parts
from hermes_memory_pgvector.terminal import lines as terminal

if TYPE_CHECKING:
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider

NAME = "try"
HELP = "take a short tour that leaves nothing behind"
GROUP = "set up"
EXAMPLES = (
    ("try", "a minute at most, in a temporary home"),
    ("try --ui", "the memory page of what the tour wrote, in your browser"),
)

SERVER_SECONDS = 180.0
STORE_SECONDS = 30.0
# Whatever the environment says, the tour never touches a real database.
SETTINGS: dict[str, Any] = {
    "dsn": "",
    "embed_url": "",
    "embed_protocol": "local",
    "embed_dim": None,
    "allowed_themes": [],
    "identity_aliases": {},
    "embed_on_write": True,
    "sync_turns": True,
    "turn_min_chars": 40,
}

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


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--ui", action="store_true", help="the memory page of what the tour writes, in your browser")
    parser.add_argument("--open", action="store_true", help="with --ui: open the page in your browser")
    parser.set_defaults(json=False)


def run(args: argparse.Namespace) -> int:
    """Show writing, recall and the walls between themes."""
    if args.ui:
        return _show_page(opens=args.open)
    if args.open:
        raise UsageError("--open goes with --ui: the tour itself has no page")
    started = time.perf_counter()
    terminal.say("A tour of the pgvector memory, in a temporary home.")
    with _home() as home:
        agents = {theme: _agent(home, theme) for theme in MEMORIES}
        _write(agents)
        _wait_until_stored(home)
        _prefetch(agents)
        _tools(agents)
        _walls(agents)
        for agent in agents.values():
            agent.shutdown()
    terminal.say()
    terminal.say(f"Done in {terminal.seconds(time.perf_counter() - started)}; the temporary home is removed.")
    terminal.say(f"To give your own agent this memory: {terminal.command('up')}")
    return 0


def _show_page(*, opens: bool) -> int:
    """Write what the tour writes, and serve the page of its home."""
    from hermes_memory_pgvector.cli import ui
    from hermes_memory_pgvector.ops.setup import plugin_folder
    from hermes_memory_pgvector.web.server import PageServer

    for name in [name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)]:
        # The page reads settings like everybody else, and must not end up in a real database.
        del os.environ[name]
    terminal.say("The memory page, in a temporary home.")
    with _home() as home:
        agents = {theme: _agent(home, theme) for theme in MEMORIES}
        _write(agents)
        _wait_until_stored(home)
        # As in a home that is set up, so that the page's checks have nothing to say.
        plugin_folder.install(home)
        update(home, ("memory",), {"provider": PROVIDER_NAME})
        terminal.say()
        server = PageServer(home, "127.0.0.1", 0)
        try:
            ui.serve(server, json=False, opens=opens)
        finally:
            server.server_close()
    terminal.say("The temporary home is removed.")
    return 0


@contextmanager
def _home() -> Iterator[Path]:
    from hermes_memory_pgvector.server.server import RUNTIME_ROLE, EmbeddedPostgres

    with tempfile.TemporaryDirectory(prefix="hermes-pgvector-try-") as name:
        home = Path(name)
        settings = load(home, SETTINGS).settings
        problem = parts.obstacle(settings)
        if problem:
            raise ConfigError(problem)
        server = EmbeddedPostgres(data_folder(home), extra_settings={"fsync": "off", "shared_buffers": "32MB"})
        try:
            _chapter("A database")
            with terminal.step("Postgres with pgvector, created and started") as said:
                info = server.ensure_running(Deadline.after(SERVER_SECONDS))
                said.append(f"version {server.status().binaries_version}")
            with terminal.step("schema created"):
                wanted = database.wanted_model(home, settings)
                if wanted.spec is None:
                    raise ConfigError(wanted.problem)
                database.apply(info.owner_dsn, RUNTIME_ROLE, wanted.spec, adopt_model=wanted.spec.name, quiet=True)
            yield home
        finally:
            try:
                # Whatever ended the tour, an engine that goes on would start the server again.
                _close()
            finally:
                server.stop(Deadline.after(60), mode="immediate")


def _agent(home: Path, theme: str) -> PgvectorMemoryProvider:
    """A provider as the host creates it for a chat with that session key."""
    from hermes_memory_pgvector.provider import PgvectorMemoryProvider

    agent = PgvectorMemoryProvider(config=SETTINGS)
    agent.initialize(f"{theme}-monday", hermes_home=str(home), gateway_session_key=theme, platform="api_server")
    return agent


def _write(agents: dict[str, PgvectorMemoryProvider]) -> None:
    _chapter("Two themes, marketing and workshop, write memories")
    for theme, agent in agents.items():
        entries = MEMORIES[theme]
        user, assistant = TURNS[theme]
        started = time.perf_counter()
        for target, content in entries:
            agent.on_memory_write("add", target, content)
        agent.sync_turn(user, assistant, session_id=f"{theme}-monday")
        took = time.perf_counter() - started
        for _, content in entries:
            _quote(theme, content)
        _quote(theme, assistant)
        terminal.bullet(
            "ok", f"{len(entries)} memories and 2 turns acknowledged, safe on disk, in {took * 1e6:,.0f} µs"
        )


def _wait_until_stored(home: Path) -> None:
    from hermes_memory_pgvector.runtime.registry import engine_for

    with terminal.step("everything stored in Postgres and embedded"):
        engine, _ = engine_for(home, SETTINGS)
        if not engine.flush(Deadline.after(STORE_SECONDS)):
            raise DatabaseUnavailable(engine.writer.status().last_error or "the vectors were not ready in time")


def _prefetch(agents: dict[str, PgvectorMemoryProvider]) -> None:
    _chapter("Before each answer, an agent is given relevant memories")
    for theme, question in (
        ("marketing", "How much money may the campaign in spring cost?"),
        ("workshop", "Which replacement part does the lathe need?"),
    ):
        _quote(theme, f"asked: {question}")
        with terminal.step("recalled for the model"):
            block = agents[theme].prefetch(question)
        for line in block.splitlines():
            if line.startswith("- "):
                _quote("", line[2:])


def _tools(agents: dict[str, PgvectorMemoryProvider]) -> None:
    _chapter("It can also search with two tools")
    calls = (
        ("marketing", "recall_memory", {"query": "who is responsible for the newsletter"}),
        ("workshop", "recall_conversation", {"query": "torque for fastening the wheels", "limit": 1}),
    )
    for theme, tool, arguments in calls:
        with terminal.step(f"{theme}: {tool}({json.dumps(arguments['query'])})"):
            answer = json.loads(agents[theme].handle_tool_call(tool, arguments))
        for hit in answer["results"][:1]:
            score = "words" if hit["score"] is None else f"{hit['score']:.2f}"
            _quote(score, hit["content"])


def _walls(agents: dict[str, PgvectorMemoryProvider]) -> None:
    _chapter("Themes do not see each other's memories")
    query = {"query": "SKF-6203 lathe bearings part number"}
    for theme in agents:
        answer = json.loads(agents[theme].handle_tool_call("recall_memory", query))
        seen = [hit for hit in answer["results"] if "SKF-6203" in hit["content"]]
        is_right = bool(seen) == (theme == "workshop")
        terminal.bullet(
            "ok" if is_right else "problem",
            f"{theme} asks for the lathe's part: {'found' if seen else 'nothing found'}",
        )
    answer = json.loads(agents["marketing"].handle_tool_call("recall_memory", {**query, "scope": "workshop"}))
    found = any("SKF-6203" in hit["content"] for hit in answer["results"])
    terminal.bullet("ok" if found else "problem", "marketing asks again and names the other theme: found")


def _close() -> None:
    from hermes_memory_pgvector.runtime.registry import close_all

    close_all(Deadline.after(5))


def _chapter(title: str) -> None:
    terminal.heading(title)


def _quote(who: str, text: str) -> None:
    terminal.wrap([terminal.one_line(text)], 14, first=[f"   {terminal.one_line(who):>9}  "])
