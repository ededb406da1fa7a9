"""A fleet's numbers as Prometheus reads them.

Counters are sums over all processes of a home, those that are gone included, so that they only grow. A home is told by
its id: names of machines and folders change, and would begin every series anew. While the database is away, counters
are left out rather than told too low, and this machine's homes say what they know themselves.
"""

from __future__ import annotations

import json
import socket
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.meters import BREAKERS, METERS, SEPARATOR
from hermes_memory_pgvector.setup import fleet_view

if TYPE_CHECKING:
    from hermes_memory_pgvector.setup.fleet_view import FleetView, LocalHome, Told

PREFIX: Final = "hermes_pgvector_"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SCRAPE_SECONDS = 8.0
REQUEST_SECONDS = 10.0
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "build_info": ("The version that tells this.", ("version",)),
    "database_up": ("Whether the database answers.", ()),
    "database_bytes": ("Size of the database.", ()),
    "turns": ("Turns that are stored.", ()),
    "memories": ("Memories that are stored.", ()),
    "themes": ("Themes that hold anything.", ()),
    "pending_vectors": ("Rows that wait for a vector.", ()),
    "kept_dead_letters": ("Records that Postgres rejected and that wait for an operator.", ()),
    "processes": ("Processes, by state: live, stale (overdue), ended (in the last day).", ("home", "state")),
    "journal_records": ("Records that wait for Postgres.", ("home",)),
    "journal_oldest_seconds": ("Age of the oldest record that waits for Postgres.", ("home",)),
    "refused_waiting": ("Refused writes that are still to be recovered.", ("home",)),
    "breaker_open": ("Processes for which a breaker is open: something does not work.", ("home", "breaker")),
}
"""What goes up and down: help and labels."""


@dataclass(frozen=True, slots=True)
class Family:
    """One name with all its numbers."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    samples: dict[tuple[str, ...], float] = field(default_factory=dict)


def families(home: Path) -> list[Family]:
    """Everything that is known now."""
    view = fleet_view.look(home, seconds=SCRAPE_SECONDS)
    gauges = {name: Family(PREFIX + name, "gauge", *told) for name, told in GAUGES.items()}
    for name, samples in _numbers(view):
        gauges[name].samples.update(samples)
    found = [*gauges.values(), *(_counters(view.told) if view.told is not None else ())]
    return [each for each in found if each.samples]


def text(home: Path) -> str:
    """The numbers in Prometheus' text format."""
    return "".join(line + "\n" for each in families(home) for line in _lines(each))


def document(home: Path) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {
            "name": each.name,
            "type": each.kind,
            "help": each.help,
            "samples": [
                {"labels": dict(zip(each.labels, key, strict=True)), "value": value}
                for key, value in each.samples.items()
            ],
        }
        for each in families(home)
    ]


class MetricsServer(ThreadingHTTPServer):
    """Serves them under /metrics to whoever collects."""

    daemon_threads = True

    def __init__(self, home: Path, host: str, port: int) -> None:
        self.home = home
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Collected)


class _Collected(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """All numbers, looked up anew."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        assert isinstance(self.server, MetricsServer)
        body = text(self.server.home).encode("utf-8")
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Whoever collects asks every few seconds."""


def names() -> list[str]:
    """Every series that may be told, as queries name it."""
    return [PREFIX + name for name in GAUGES] + [f"{PREFIX}{meter.name}_total" for meter in METERS]


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for key, value in family.samples.items():
        # The escapes of a label's value are those of JSON, as far as either has any.
        told = zip(family.labels, key, strict=True)
        labels = ",".join(f"{name}={json.dumps(each, ensure_ascii=False)}" for name, each in told)
        yield f"{family.name}{'{' + labels + '}' if labels else ''} {float(value)!r}"


def _numbers(view: FleetView) -> Iterator[tuple[str, dict[tuple[str, ...], float]]]:
    told = view.told
    yield "build_info", {(__version__,): 1}
    yield "database_up", {(): told is not None}
    if told is not None:
        yield "database_bytes", {(): told.database_bytes}
        yield "turns", {(): told.contents.turns}
        yield "memories", {(): told.contents.memories}
        yield "themes", {(): told.contents.theme_count}
        yield "pending_vectors", {(): told.vectors_pending}
        yield "kept_dead_letters", {(): told.dead_letters}
    yield from _homes(view)


def _homes(view: FleetView) -> Iterator[tuple[str, dict[tuple[str, ...], float]]]:
    """How each home is doing: from what its processes told last, and for this machine's homes from their own files."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    states: Counter[tuple[str, str]] = Counter()
    breakers: Counter[tuple[str, str]] = Counter()
    for each in view.told.processes if view.told is not None else ():
        home = each.process.home_id
        state = "ended" if each.ended_at is not None else "stale" if each.is_stale else "live"
        states[home, state] += 1
        gauges = found[home]
        if state == "live":
            for name in ("journal_records", "refused_waiting"):
                gauges[name] += each.state.get(name, 0)
            oldest = each.state.get("journal_oldest_seconds", 0)
            gauges["journal_oldest_seconds"] = max(gauges["journal_oldest_seconds"], oldest)
            breakers.update((home, name) for name in each.state.get("trouble", {}))
    for local in view.homes:
        found[local.id] |= _local(local, is_known=view.told is not None)
        open_ones = Counter(name.name for process in local.report.processes for name in process.open_breakers)
        breakers |= Counter({(local.id, name): number for name, number in open_ones.items()})
        if view.told is None:
            states[local.id, "live"] = len(local.report.processes)
    yield "processes", {(home, state): states[home, state] for home in found for state in ("live", "stale", "ended")}
    for name in ("journal_records", "journal_oldest_seconds", "refused_waiting"):
        yield name, {(home,): gauges[name] for home, gauges in found.items() if name in gauges}
    yield "breaker_open", {(home, name): breakers[home, name] for home in found for name in BREAKERS}


def _local(local: LocalHome, *, is_known: bool) -> dict[str, float]:
    """A home's own files are newer than what its processes have told."""
    report = local.report
    refused = {"refused_waiting": report.refused_waiting}
    if not is_known:
        # Without watermarks, what has been stored and is kept for a while cannot be told from what waits.
        return {**refused, "journal_records": sum(each.writer_waiting for each in report.processes)}
    return {**refused, "journal_records": report.records, "journal_oldest_seconds": report.oldest_age_seconds}


def _counters(told: Told) -> Iterator[Family]:
    summed: dict[str, Counter[str]] = defaultdict(Counter)
    entries = [(each.process.home_id, each.counters) for each in told.processes]
    for home, counters in [*entries, *((home, counters) for home, _, counters in told.past)]:
        summed[home].update(counters)
    for meter in METERS:
        family = Family(f"{PREFIX}{meter.name}_total", "counter", meter.help, ("home", *filter(None, [meter.label])))
        for home, totals in summed.items():
            for value in meter.values:
                family.samples[home, value] = totals[f"{meter.name}{SEPARATOR}{value}"]
            if not meter.values:
                family.samples[home,] = totals[meter.name]
        yield family
