"""After an upgrade or a move of Postgres, `up` confirms the new database for every profile of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import yaml

from hermes_memory_pgvector.config.home import home_id
from hermes_memory_pgvector.config.settings_file import data_folder
from hermes_memory_pgvector.store import installation
from testing.command import Commands
from testing.postgres import MODEL, Database


def _configure(home: Path, dsn: str) -> None:
    home.mkdir(parents=True)
    settings = {"dsn": dsn, "embed_url": "http://127.0.0.1:9/", "embed_model": MODEL}
    document = {"memory": {"provider": "pgvector", "pgvector": settings}}
    (home / "config.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def test_up_makes_every_profile_accept_the_database_it_names_now(tmp_path: Path, database: Database) -> None:
    commands = Commands(tmp_path)
    root, used, unused = (commands.home, *(commands.home / "profiles" / name for name in ("used", "unused")))
    with psycopg.connect(database.runtime_dsn) as connection:
        now = installation.identify(connection)
    assert now is not None
    upgraded = replace(now, server="of the old major version")
    where = installation.place(database.runtime_dsn)
    for home in (root, used, unused):
        _configure(home, database.runtime_dsn)
        if home != unused:
            installation.learn(data_folder(home), home_id(home), where, upgraded)
            assert "hermes-pgvector up" in installation.objection(
                installation.read(data_folder(home), home_id(home)), where, now
            )
    done = commands.call("up", "--all-profiles", "--json")
    assert set(done.json["profiles"]) == {str(used), str(unused)}, done.everything
    for home in (root, used):
        known = installation.read(data_folder(home), home_id(home))
        assert installation.objection(known, where, now) == "", done.everything
