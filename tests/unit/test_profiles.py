"""Which database the profiles of one hermes installation use, and whose entries they take over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from hermes_memory_pgvector.config.home import home_id, identity, inherited
from hermes_memory_pgvector.config.settings_file import dotenv, load
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.ops import new_settings, profiles
from hermes_memory_pgvector.server.folder import PostgresFolder, server_folder
from hermes_memory_pgvector.store.installation import place


def make_home(path: Path, **settings: object) -> Path:
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(yaml.safe_dump({"memory": {"pgvector": settings}}), encoding="utf-8")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_home(tmp_path / "hermes")


def folder_of(home: Path) -> Path:
    return server_folder(home, load(home).settings)


def test_a_profile_shares_the_server_of_its_root_home(root: Path) -> None:
    coder = make_home(root / "profiles" / "coder")
    assert folder_of(coder) == folder_of(root) == root / "pgvector"


def test_a_profile_has_its_own_when_it_says_so_or_already_does(root: Path) -> None:
    walled = make_home(root / "profiles" / "walled", own_server=True)
    assert folder_of(walled) == walled / "pgvector"
    older = make_home(root / "profiles" / "older")
    PostgresFolder(older / "pgvector").data.mkdir(parents=True)
    assert folder_of(older) == older / "pgvector"


def test_a_folder_that_only_looks_like_a_profile_is_a_home_of_its_own(tmp_path: Path) -> None:
    home = make_home(tmp_path / "srv" / "profiles" / "ada")
    assert folder_of(home) == home / "pgvector"
    assert profiles.join(home) == []


def test_a_profile_takes_over_what_it_has_not_chosen_itself(tmp_path: Path) -> None:
    dsn = "postgresql://hermes:s3cret@db.example/memory"
    root = make_home(tmp_path / "hermes", dsn=dsn, embed_url="http://127.0.0.1:11434", embed_api_key_env="MY_KEY")
    (root / ".env").write_text("MY_KEY=k\nOTHER=x\n", encoding="utf-8")
    coder = make_home(root / "profiles" / "coder")
    assert profiles.join(coder) == ["dsn", "embed_api_key_env", "embed_url"]
    assert place(load(coder).settings.dsn) == place(dsn)
    assert "s3cret" in load(coder).settings.dsn
    assert load(coder).settings.embed_url == "http://127.0.0.1:11434"
    assert dotenv(coder)["MY_KEY"] == "k"
    assert "OTHER" not in dotenv(coder)
    assert "s3cret" not in (coder / "config.yaml").read_text(encoding="utf-8")
    assert profiles.join(coder) == [], "a second time changes nothing"


def test_a_profile_with_a_database_of_its_own_is_left_alone(tmp_path: Path) -> None:
    root = make_home(tmp_path / "hermes", dsn="postgresql://db.example/shared", embed_url="http://127.0.0.1:11434")
    own = make_home(root / "profiles" / "own", dsn="postgresql://db.example/mine")
    walled = make_home(root / "profiles" / "walled", own_server=True)
    for home in (own, walled):
        before = (home / "config.yaml").read_text(encoding="utf-8")
        assert profiles.join(home) == []
        assert (home / "config.yaml").read_text(encoding="utf-8") == before


def test_whoever_shares_a_database_embeds_as_it_does(tmp_path: Path) -> None:
    root = make_home(tmp_path / "hermes", embed_url="http://127.0.0.1:11434", embed_model="one")
    coder = make_home(root / "profiles" / "coder", embed_model="other", embed_dim=7)
    assert set(profiles.join(coder)) == {"embed_url", "embed_model", "embed_dim"}
    settings = load(coder).settings
    assert (settings.embed_url, settings.embed_model, settings.embed_dim) == ("http://127.0.0.1:11434", "one", None)
    new_settings.save(coder, {"embed_model": "one"})
    with pytest.raises(ConfigError, match="shares the root home's database"):
        new_settings.save(coder, {"embed_model": "other"})
    assert profiles.embedding_home(coder) == root
    new_settings.save(coder, {"own_server": True, "embed_model": "other"})
    assert profiles.embedding_home(coder) == coder


def heirs(root: Path, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    homes = {"root": root, **{name: root / "profiles" / name for name in names}}
    return {name: inherited(home, identity(home), shares_database=True) for name, home in homes.items()}


def test_clones_beside_their_original_inherit_nothing(root: Path) -> None:
    home_id(root)
    shutil.copytree(root / "pgvector", root / "profiles" / "work" / "pgvector")
    home_id(root / "profiles" / "work")
    shutil.copytree(root / "profiles" / "work" / "pgvector", root / "profiles" / "deep" / "pgvector")
    assert heirs(root, ("work", "deep")) == {"root": (), "work": (), "deep": ()}


def test_copied_together_each_home_inherits_from_its_own_original_only(root: Path, tmp_path: Path) -> None:
    first = home_id(root)
    shutil.copytree(root / "pgvector", root / "profiles" / "work" / "pgvector")
    second = home_id(root / "profiles" / "work")
    copy = tmp_path / "copy" / "hermes"
    shutil.copytree(root, copy)
    assert heirs(copy, ("work",)) == {"root": (first,), "work": (second,)}
