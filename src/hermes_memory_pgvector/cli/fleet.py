"""`status --fleet`: the processes of a whole database and the agents they work for, whichever machines they run on."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_memory_pgvector.cli import options
from hermes_memory_pgvector.cli.status import tell_processes
from hermes_memory_pgvector.config.settings_file import load
from hermes_memory_pgvector.meters import EMBEDDED_ROWS, RECALLS, RECORDS, SEPARATOR
from hermes_memory_pgvector.setup import fleet_view, parts, terminal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from hermes_memory_pgvector.setup.fleet_view import FleetView, Told
    from hermes_memory_pgvector.store.fleet import Agent, Heard
    from hermes_memory_pgvector.terminal.sink import Styled


def run(args: argparse.Namespace) -> int:
    """Show the fleet; without the database, the processes of this machine's homes, and exit with 2."""
    home = options.home_of(args)
    view = fleet_view.look(home, agents=args.top)
    if args.json:
        terminal.as_json(_document(home, view))
    elif view.told is None:
        _tell_local(view)
    else:
        terminal.say("Fleet of ", terminal.styled(parts.describe_database(home, load(home).settings), "strong"))
        _tell(view.told, args.top)
    return 0 if view.told is not None else 2


def _document(home: Path, view: FleetView) -> dict[str, Any]:
    told = view.told
    return {
        "database": parts.describe_database(home, load(home).settings),
        "error": str(view.problem) if view.problem else None,
        "processes": [] if told is None else [_process(each) for each in told.processes],
        "agents": [] if told is None else [asdict(each) for each in told.agents],
        "homes": [
            {
                "home_id": each.id,
                "path": str(each.path),
                "journal": each.report.totals(),
                "processes": [asdict(process) for process in each.report.processes],
            }
            for each in view.homes
        ],
    }


def _process(heard: Heard) -> dict[str, Any]:
    return {
        **asdict(heard.process),
        "started_at": heard.started_at,
        "seen_at": heard.seen_at,
        "ended_at": heard.ended_at,
        "stale": heard.is_stale,
        "state": heard.state,
        "counters": heard.counters,
    }


def _tell_local(view: FleetView) -> None:
    """What is known without the database."""
    hint = "to check everything: hermes-pgvector doctor"
    terminal.bullet("problem", f"database: {view.problem}", hint)
    for each in view.homes:
        terminal.say()
        waiting = sum(process.writer_waiting for process in each.report.processes)
        told = terminal.count(len(each.report.processes), "process", "processes")
        terminal.say(
            "  ", terminal.styled(each.path, "strong"), f": {told}, {terminal.count(waiting, 'record')} waiting"
        )
        if each.report.processes:
            tell_processes(each.report)


def _tell(told: Told, most: int) -> None:
    shown = [each for each in told.processes if each.ended_at is None]
    ended = len(told.processes) - len(shown)
    stale = sum(each.is_stale for each in shown)
    hosts = len({each.process.host for each in shown})
    sentence = f"{terminal.count(len(shown) - stale, 'process', 'processes')} at work"
    sentence += f" and {terminal.number(stale)} stale" if stale else ""
    sentence += f" on {terminal.count(hosts, 'machine')}" if hosts else ""
    sentence += f"; {ended} ended in the last day" if ended else ""
    terminal.say(f"  {sentence}")
    if shown:
        terminal.say()
        listed = [each for each in shown if not each.is_stale]
        listed += [each for each in shown if each.is_stale][:most]
        _tell_processes(listed, told.at)
        if len(listed) < len(shown):
            terminal.say(f"  {terminal.number(len(shown) - len(listed))} more are stale; --json lists them all")
    if told.agents:
        terminal.say()
        _tell_agents(told.agents, told.at)


def _tell_processes(shown: Sequence[Heard], now: datetime) -> None:
    terminal.table(
        ("process", "kind", "host", "home", "version", "seen", "records", "embedded", "recalls", "waiting", "state"),
        [
            (
                f"{each.process.command} {each.process.pid}",
                each.process.kind or "-",
                each.process.host,
                each.process.home,
                each.process.version,
                terminal.ago(each.seen_at, now),
                _counted(each.counters, RECORDS.name),
                _counted(each.counters, EMBEDDED_ROWS.name),
                _counted(each.counters, *(f"{RECALLS.name}{SEPARATOR}{caller}" for caller in RECALLS.values)),
                _counted(each.state, "journal_records"),
                _state(each),
            )
            for each in shown
        ],
        right=(6, 7, 8, 9),
    )


def _tell_agents(agents: Sequence[Agent], now: datetime) -> None:
    terminal.table(
        ("agent", "kind", "host", "first seen", "last seen", "sessions", "turns", "memories", "recalls"),
        [
            (
                terminal.styled(each.theme, "name"),
                each.kind or "-",
                each.host,
                terminal.ago(each.first_seen, now),
                terminal.ago(each.last_seen, now),
                terminal.number(each.sessions),
                terminal.number(each.turns),
                terminal.number(each.memories),
                terminal.number(each.recalls),
            )
            for each in agents
        ],
        right=(5, 6, 7, 8),
    )


def _counted(counters: Mapping[str, Any], *names: str) -> str:
    return terminal.number(int(sum(counters.get(name, 0) for name in names)))


def _state(heard: Heard) -> Styled:
    if heard.is_stale:
        return terminal.styled("stale: it was killed, or cannot reach the database", "problem")
    trouble = heard.state.get("trouble", {})
    if trouble:
        return terminal.styled("; ".join(f"{name}: {reason}" for name, reason in trouble.items()), "problem")
    return terminal.styled("all well", "ok")
