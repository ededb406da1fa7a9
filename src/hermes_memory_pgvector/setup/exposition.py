"""A fleet's numbers as Prometheus reads them.

Counters are sums over all processes of a home, those that are gone included, so that they only grow. A home is told by
its id: names of machines and folders change, and would begin every series anew. While the database is away, counters
are left out rather than told too low, and this machine's homes say what they know themselves.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from hermes_memory_pgvector import __version__
from hermes_memory_pgvector.meters import BEYOND, BREAKERS, BUCKETS, METERS, SEPARATOR, SUM, Meter
from hermes_memory_pgvector.setup import fleet_view

if TYPE_CHECKING:
    from prometheus_client import Metric

    from hermes_memory_pgvector.setup.fleet_view import FleetView, LocalHome, Told
    from hermes_memory_pgvector.store.fleet import Heard

PREFIX: Final = "hermes_pgvector_"
SCRAPE_SECONDS = 8.0
PAST: Final = "past"
"""Stands in place of a process for all those whose rows are gone."""
GAUGES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "build_info": ("The version that tells this.", ("version",)),
    "database_up": ("Whether the database answers.", ()),
    "collect_seconds": ("Time it took to collect all this.", ()),
    "database_bytes": ("Size of the database.", ()),
    "turns": ("Turns that are stored.", ()),
    "memories": ("Memories that are stored.", ()),
    "themes": ("Themes that hold anything.", ()),
    "pending_vectors": ("Rows that wait for a vector.", ()),
    "kept_dead_letters": ("Records that Postgres rejected and that wait for an operator.", ()),
    "processes": ("Processes, by state: live, stale (overdue), ended (in the last day).", ("home", "state")),
    "home_info": ("Where a home is.", ("home", "host", "path")),
    "process_info": ("A process at work; only with --per-process.", ("home", "process", "command", "kind", "version")),
    "process_seen_seconds": ("Seconds since a process was heard of; only with --per-process.", ("home", "process")),
    "journal_records": ("Records that wait for Postgres.", ("home",)),
    "journal_oldest_seconds": ("Age of the oldest record that waits for Postgres.", ("home",)),
    "journal_bytes": ("Bytes of the records that wait for Postgres.", ("home",)),
    "journal_disk_bytes": ("Bytes of all journal files; only for homes of this machine.", ("home",)),
    "refused_waiting": ("Refused writes that are still to be recovered.", ("home",)),
    "breaker_open": ("Processes for which a breaker is open: something does not work.", ("home", "breaker")),
    "theme_turns": ("Turns of a theme; only with --themes.", ("theme",)),
    "theme_memories": ("Memories of a theme; only with --themes.", ("theme",)),
}
"""What goes up and down: help and labels."""

Counters = dict[tuple[str, ...], dict[str, float]]
"""By home, or home and process: totals by name."""


class Fleet(Collector):
    """Looks anew each time somebody asks."""

    def __init__(self, home: Path, *, per_process: bool = False, themes: int = 0) -> None:
        self._home = home
        self._per_process = per_process
        self._themes = themes

    def describe(self) -> list[Metric]:
        """Nothing beforehand: a registry would look at everything to find out."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Everything that is known now."""
        started = time.perf_counter()
        view = fleet_view.look(self._home, themes=self._themes, seconds=SCRAPE_SECONDS)
        yield from _gauges(view, per_process=self._per_process, wants_themes=self._themes > 0)
        if view.told is not None:
            yield from _counters(_summed(view.told, per_process=self._per_process), per_process=self._per_process)
        yield _gauge("collect_seconds", [((), time.perf_counter() - started)])


def registry(fleet: Fleet) -> CollectorRegistry:
    """A registry with this alone: nothing of the interpreter that happens to collect it."""
    made = CollectorRegistry(auto_describe=False)
    made.register(fleet)
    return made


def text(fleet: Fleet) -> str:
    """The numbers in Prometheus' text format."""
    return generate_latest(registry(fleet)).decode("utf-8")


def document(fleet: Fleet) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {
            "name": metric.name,
            "type": metric.type,
            "help": metric.documentation,
            "samples": [
                {"name": each.name, "labels": dict(each.labels), "value": each.value} for each in metric.samples
            ],
        }
        for metric in fleet.collect()
    ]


def names() -> list[str]:
    """Every series that may be told, as queries name it."""
    found = [PREFIX + name for name in GAUGES]
    for meter in METERS:
        suffixes = ("_total",) if meter.kind == "counter" else ("_bucket", "_sum", "_count")
        found += [PREFIX + meter.name + suffix for suffix in suffixes]
    return found


def _gauge(name: str, samples: Sequence[tuple[Sequence[str], float]]) -> GaugeMetricFamily:
    help_text, labels = GAUGES[name]
    made = GaugeMetricFamily(PREFIX + name, help_text, labels=labels)
    for values, value in samples:
        made.add_metric(list(values), value)
    return made


def _gauges(view: FleetView, *, per_process: bool, wants_themes: bool) -> Iterator[GaugeMetricFamily]:
    told = view.told
    yield _gauge("build_info", [((__version__,), 1)])
    yield _gauge("database_up", [((), told is not None)])
    if told is not None:
        yield _gauge("database_bytes", [((), told.database_bytes)])
        yield _gauge("turns", [((), told.contents.turns)])
        yield _gauge("memories", [((), told.contents.memories)])
        yield _gauge("themes", [((), told.contents.theme_count)])
        yield _gauge("pending_vectors", [((), told.vectors_pending)])
        yield _gauge("kept_dead_letters", [((), told.dead_letters)])
        if per_process:
            yield from _processes(told)
        if wants_themes:
            yield _gauge("theme_turns", [((each.theme,), each.turns) for each in told.contents.themes])
            yield _gauge("theme_memories", [((each.theme,), each.memories) for each in told.contents.themes])
    yield from _homes(view)


def _processes(told: Told) -> Iterator[GaugeMetricFamily]:
    live: dict[tuple[str, str], Heard] = {}
    for each in told.processes:
        if each.ended_at is None:
            # A container that was killed and started again has the same name and number: the one heard of last counts.
            live.setdefault((each.process.home_id, _name(each.process.host, each.process.pid)), each)
    yield _gauge(
        "process_info",
        [((*key, each.process.command, each.process.kind, each.process.version), 1) for key, each in live.items()],
    )
    yield _gauge(
        "process_seen_seconds",
        [(key, max(0.0, (told.at - each.seen_at).total_seconds())) for key, each in live.items()],
    )


def _homes(view: FleetView) -> Iterator[GaugeMetricFamily]:
    """How each home is doing: from what its processes told last, and for this machine's homes from their own files."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    states: dict[tuple[str, str], int] = {}
    open_breakers: dict[tuple[str, str], int] = {}
    places: dict[str, tuple[str, str]] = {}
    for each in view.told.processes if view.told is not None else ():
        home = each.process.home_id
        places.setdefault(home, (each.process.host, each.process.home))
        state = "ended" if each.ended_at is not None else "stale" if each.is_stale else "live"
        states[home, state] = states.get((home, state), 0) + 1
        if state == "live":
            gauges = found[home]
            for name in ("journal_records", "journal_bytes", "refused_waiting"):
                gauges[name] += each.state.get(name, 0)
            gauges["journal_oldest_seconds"] = max(
                gauges["journal_oldest_seconds"], each.state.get("journal_oldest_seconds", 0)
            )
            for name in each.state.get("trouble", {}):
                open_breakers[home, name] = open_breakers.get((home, name), 0) + 1
    for local in view.homes:
        _add_local(local, found[local.id], open_breakers, is_known=view.told is not None)
        if view.told is None:
            places[local.id] = ("", str(local.path))
            states[local.id, "live"] = len(local.report.processes)
    yield _gauge("home_info", [((home, *place), 1) for home, place in places.items()])
    yield _gauge(
        "processes",
        [((home, state), states.get((home, state), 0)) for home in found.keys() | places.keys()
         for state in ("live", "stale", "ended")],
    )  # fmt: skip
    for name in ("journal_records", "journal_oldest_seconds", "journal_bytes", "journal_disk_bytes", "refused_waiting"):
        yield _gauge(name, [((home,), gauges[name]) for home, gauges in found.items() if name in gauges])
    yield _gauge(
        "breaker_open",
        [((home, name), open_breakers.get((home, name), 0)) for home in found for name in BREAKERS],
    )


def _add_local(
    local: LocalHome, gauges: dict[str, float], open_breakers: dict[tuple[str, str], int], *, is_known: bool
) -> None:
    """A home's own files are newer than what its processes have told."""
    report = local.report
    gauges["journal_disk_bytes"] = report.bytes_on_disk
    gauges["refused_waiting"] = report.refused_waiting + report.refused_left
    for name in BREAKERS:
        open_breakers[local.id, name] = sum(
            name in [breaker.name for breaker in process.open_breakers] for process in report.processes
        )
    if is_known:
        gauges["journal_records"] = report.records
        gauges["journal_oldest_seconds"] = report.oldest_age_seconds
        gauges["journal_bytes"] = sum(each.bytes for each in report.writers)
    else:
        # Without watermarks, what has been stored and is kept for a while cannot be told from what waits.
        gauges["journal_records"] = sum(each.writer_waiting for each in report.processes)


def _summed(told: Told, *, per_process: bool) -> Counters:
    """Totals by home, or by home and process."""
    found: Counters = {}
    entries = [(each.process.home_id, _name(each.process.host, each.process.pid), each.counters)
               for each in told.processes]  # fmt: skip
    entries += [(home_id, PAST, counters) for home_id, _, counters in told.past]
    for home, process, counters in entries:
        into = found.setdefault((home, process) if per_process else (home,), defaultdict(float))
        for name, value in counters.items():
            into[name] += value
    return found


def _counters(found: Counters, *, per_process: bool) -> Iterator[Metric]:
    own = ("home", "process") if per_process else ("home",)
    for meter in METERS:
        labels = [*own, *([meter.label] if meter.label else [])]
        if meter.kind == "counter":
            counter = CounterMetricFamily(PREFIX + meter.name, meter.help, labels=labels)
            for key, totals in found.items():
                for value in meter.values or ("",):
                    name = f"{meter.name}{SEPARATOR}{value}" if value else meter.name
                    counter.add_metric([*key, *([value] if value else [])], totals.get(name, 0))
            yield counter
        else:
            histogram = HistogramMetricFamily(PREFIX + meter.name, meter.help, labels=labels)
            for key, totals in found.items():
                for value in meter.values or ("",):
                    buckets, total = _buckets(meter, value, totals)
                    histogram.add_metric([*key, *([value] if value else [])], buckets, total)
            yield histogram


def _buckets(meter: Meter, value: str, totals: Mapping[str, float]) -> tuple[list[tuple[str, float]], float]:
    """What is at most each bound, and the sum of all."""
    name = f"{meter.name}{SEPARATOR}{value}{SEPARATOR}"
    seen = 0.0
    buckets = []
    for bound in (*BUCKETS, BEYOND):
        seen += totals.get(f"{name}{bound}", 0)
        buckets.append((str(bound), seen))
    return buckets, totals.get(f"{name}{SUM}", 0)


def _name(host: str, pid: int) -> str:
    return f"{host}/{pid}"
