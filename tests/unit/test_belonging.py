"""Which database a home's journal belongs to, as it is noted beside the journal."""

from __future__ import annotations

import json
from pathlib import Path

from hermes_memory_pgvector.store import installation
from hermes_memory_pgvector.store.installation import DatabaseIdentity


def test_what_a_newer_version_has_noted_holds_for_this_one(tmp_path: Path) -> None:
    ours = DatabaseIdentity("installation", "hermes_memory", "server")
    installation.learn(tmp_path, "home", "a place", ours)
    file = tmp_path / installation.FILE_NAME
    told = json.loads(file.read_text(encoding="utf-8"))
    told["identity"]["since_then"] = "something"
    file.write_text(json.dumps({**told, "more": 1}), encoding="utf-8")
    known = installation.read(tmp_path, "home")
    assert known is not None
    assert known.identity == ours
    assert installation.objection(known, "a place", DatabaseIdentity("another", "hermes_memory", "server"))
