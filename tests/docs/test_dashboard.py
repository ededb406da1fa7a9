"""The Grafana dashboard asks for what `metrics` tells, and for nothing else."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.meters import METERS, TOLD_APART
from hermes_memory_pgvector.ops.fleet.metrics import PREFIX

FILE = Path(__file__).parents[2] / "docs" / "deploy" / "grafana-dashboard.json"
OF_PROCESS = ("home", "process")
GAUGES = {
    "build_info": ("version",), "database_up": (), "waiting": (), "memories": (), "turns": (), "themes": (),
    "hidden": (), "pending_vectors": (), "rejected_records": (), "database_bytes": (), "processes": ("home", "state"),
    "seconds_since_heard": ("home",), "trouble": (*OF_PROCESS, "what"), "journal_records": OF_PROCESS,
    "journal_bytes": OF_PROCESS, "journal_oldest_seconds": OF_PROCESS, "refused_waiting": OF_PROCESS,
}  # fmt: skip
"""What goes up and down; tests/database/test_fleet.py compares it with what is told."""
SERIES = re.compile(rf"\b({PREFIX}\w+)(?:{{([^}}]*)}})?")
GROUPED = re.compile(r"by \(([^)]*)\)")


@cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def panels() -> list[dict[str, Any]]:
    return [each for each in dashboard()["panels"] if each["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for each in panels() for target in each["targets"]]


def labels_of(series: str) -> set[str]:
    name = series.removeprefix(PREFIX)
    if name in GAUGES:
        return set(GAUGES[name])
    for meter in METERS:
        if name == f"{meter}_total":
            return {"home", "process"} | ({"of"} if meter in TOLD_APART else set())
    raise AssertionError(f"metrics does not tell {series}")


def test_what_it_asks_for_is_told() -> None:
    asked = [
        *expressions(),
        *(each["definition"] for each in dashboard()["templating"]["list"] if "definition" in each),
    ]
    for expression in asked:
        assert expression.count("(") == expression.count(")")
        for series, selector in SERIES.findall(expression):
            given = re.findall(r"(\w+)(?:=~|!=|=)", selector)
            assert set(given) <= labels_of(series), expression
        (first, _), *_ = SERIES.findall(expression)
        for grouped in GROUPED.findall(expression):
            assert set(grouped.split(", ")) <= labels_of(first), expression


def test_every_meter_and_every_gauge_of_a_fleet_is_shown() -> None:
    shown = {series for expression in expressions() for series, _ in SERIES.findall(expression)}
    for meter in METERS:
        assert any(each.startswith(PREFIX + meter) for each in shown), meter
    unshown = {PREFIX + name for name in GAUGES} - shown
    assert {each.removeprefix(PREFIX) for each in unshown} == {
        "build_info", "hidden", "journal_bytes", "seconds_since_heard", "waiting",
    }  # fmt: skip
