"""The Grafana dashboard has the structure of Grafana's schema and asks for nothing that `metrics` does not tell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hermes_memory_pgvector.meters import METERS, TOLD_APART
from hermes_memory_pgvector.ops.fleet.metrics import PREFIX

FILE = Path(__file__).parents[2] / "docs" / "deploy" / "grafana-dashboard.json"
COLUMNS = 24
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
# What each part of the schema asks for, and of which type it is.
DASHBOARD = {
    "title": str, "uid": str, "schemaVersion": int, "version": int, "panels": list, "templating": dict, "time": dict,
    "timepicker": dict, "annotations": dict, "links": list, "tags": list, "editable": bool, "graphTooltip": int,
    "refresh": str, "timezone": str,
}  # fmt: skip
PANEL = {
    "id": int, "type": str, "title": str, "description": str, "datasource": dict, "gridPos": dict, "fieldConfig": dict,
    "options": dict, "targets": list,
}  # fmt: skip
TARGET = {"refId": str, "expr": str, "datasource": dict, "legendFormat": str}
VARIABLE = {"name": str, "type": str, "label": str, "hide": int, "multi": bool, "includeAll": bool}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@cache
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def panels() -> list[dict[str, Any]]:
    return [each for each in dashboard()["panels"] if each["type"] != "row"]


def expressions() -> list[str]:
    return [target["expr"] for each in panels() for target in each["targets"]]


def fits(part: dict[str, Any], shape: Mapping[str, type]) -> None:
    for name, kind in shape.items():
        assert isinstance(part[name], kind), (part.get("title"), name)


def test_every_part_has_what_the_schema_asks_for() -> None:
    fits(dashboard(), DASHBOARD)
    assert len(dashboard()["uid"]) <= 40
    assert dashboard().get("id") is None, "an id belongs to one Grafana"
    assert {each["type"] for each in dashboard()["panels"]} == {"row", "stat", "timeseries"}
    ids = [each["id"] for each in dashboard()["panels"]]
    assert len(set(ids)) == len(ids)
    for each in panels():
        fits(each, PANEL)
        assert each["datasource"] == SOURCE
        assert set(each["fieldConfig"]) == {"defaults", "overrides"}
        steps = each["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0]["value"] is None
        assert each["targets"]
        assert len({target["refId"] for target in each["targets"]}) == len(each["targets"])
        for target in each["targets"]:
            fits(target, TARGET)
            assert target["datasource"] == SOURCE
    variables = dashboard()["templating"]["list"]
    for each in variables:
        fits(each, VARIABLE)
    assert [each["name"] for each in variables] == ["datasource", "home"]


def test_panels_stand_side_by_side_and_nowhere_twice() -> None:
    taken: set[tuple[int, int]] = set()
    for each in dashboard()["panels"]:
        place = each["gridPos"]
        assert set(place) == {"x", "y", "w", "h"}
        assert place["x"] + place["w"] <= COLUMNS
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, each["title"]
        taken |= cells


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
