"""After an upgrade or a move of Postgres, one command confirms the new database for every profile of a machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import psycopg
import yaml

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.store import installation
from testing.command import Commands
from testing.postgres import Database


def _configure(home: Path, dsn: str) -> None:
    home.mkdir(parents=True)
    document = {"memory": {"provider": "pgvector", "pgvector": {"dsn": dsn}}}
    (home / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def test_a_database_that_is_down_is_accepted_when_it_comes_up(tmp_path: Path, database: Database) -> None:
    """Confirmed while the upgraded server is still starting, in the place of the old one."""
    commands = Commands(tmp_path)
    down = "postgresql://hermes@127.0.0.1:9/memory"
    _configure(commands.home, down)
    with psycopg.connect(database.runtime_dsn) as connection:
        found = installation.identify(connection)
    assert found is not None
    folder, own, where = data_folder(commands.home), home_id(commands.home), installation.place(down)
    installation.learn(folder, own, where, replace(found, server="of the old major version"))
    assert installation.objection(installation.read(folder, own), where, found)
    assert commands.call("journal", "accept-database", "--json").json["changed"] is True
    assert installation.objection(installation.read(folder, own), where, found) == ""
    assert commands.call("journal", "accept-database", "--json").json["changed"] is False


def test_every_profile_that_has_used_a_database_accepts_the_one_it_names_now(
    tmp_path: Path, database: Database
) -> None:
    commands = Commands(tmp_path)
    root, used, unused, broken = (
        commands.home,
        *(commands.home / "profiles" / name for name in ("used", "unused", "broken")),
    )
    with psycopg.connect(database.runtime_dsn) as connection:
        now = installation.identify(connection)
    assert now is not None
    upgraded = replace(now, server="of the old major version")
    where = installation.place(database.runtime_dsn)
    for home in (root, used, unused, broken):
        _configure(home, database.runtime_dsn)
        if home != unused:
            installation.learn(data_folder(home), home_id(home), where, upgraded)
    (broken / "config.yaml").write_text("memory: [", encoding="utf-8")
    before = sorted(unused.rglob("*"))
    done = commands.call("journal", "accept-database", "--all-profiles", "--json")
    assert done.code == 1, done.everything
    told = {row["home"]: (row["changed"], bool(row["error"])) for row in done.json}
    assert told == {str(root): (True, False), str(used): (True, False), str(broken): (False, True)}
    for home in (root, used):
        known = installation.read(data_folder(home), home_id(home))
        assert known is not None
        assert installation.objection(known, where, now) == ""
    assert sorted(unused.rglob("*")) == before
    kept = json.loads((data_folder(broken) / installation.FILE_NAME).read_text(encoding="utf-8"))
    assert kept["identity"]["server"] == upgraded.server
    again = commands.call("journal", "accept-database", "--all-profiles")
    assert f"{used}: the journal already belonged to" in again.out
    assert str(broken) in again.out
