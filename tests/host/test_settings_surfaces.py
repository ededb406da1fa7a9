"""Status, wizard, dashboard and backup of the host: they show no secret and change only what was asked for."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
import zipfile
from typing import Any

import pytest
import yaml

from testing.hermes import MakeHome
from testing.hermes_home import HERMES, HermesHome, write_variables
from testing.hermes_servers import WebServer
from testing.llm_server import ScriptedLLM

CHOSEN: dict[str, Any] = {
    "prefetch_limit": 3,
    "min_similarity": 0.25,
    "hybrid_search": False,
    "allowed_themes": ["hermes", "marketing"],
    "identity_aliases": {"mkt": "marketing"},
    "embed_protocol": "openai",
    "turn_min_chars": 20,
}
CODERS = "memory: {provider: pgvector, pgvector: {prefetch_limit: 9, embed_url: 'http://127.0.0.1:9/'}}\n"
PAGE = "/api/memory/providers/pgvector/config"
OTHERS: dict[str, Any] = {
    "display": {"compact": True},
    "plugins": {"pgvector": {"journal_max_mb": 5000}},
    "my_own_section": {"kept": ["as", "it", "is"]},
}


@pytest.fixture
def chosen_home(make_home: MakeHome) -> HermesHome:
    """A home whose owner has set many things."""
    return make_home(sections=OTHERS, **CHOSEN)


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Dotted path -> (before, after) of every leaf that differs."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return {path: (old.get(path), new.get(path)) for path in {*old, *new} if old.get(path) != new.get(path)}


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, f"{path}.{key}".lstrip("."))]
    return [(path, value)]


def test_memory_status_says_available_and_hides_the_password(chosen_home: HermesHome) -> None:
    status = chosen_home.run("memory", "status")
    assert status.code == 0, status
    assert "installed ✓" in status.out
    assert "available ✓" in status.out
    assert "pgvector" in status.out
    assert "prefetch_limit" in status.out
    assert chosen_home.password not in status.out + status.err


def test_the_dashboard_finds_the_provider_ready(chosen_home: HermesHome) -> None:
    with chosen_home.web() as web:
        (row,) = [row for row in web.get("/api/memory").json["providers"] if row["name"] == "pgvector"]
    assert row["status"] == "ready"
    assert row["setup"]["dependencies_installed"] is True


def test_saving_one_field_in_the_dashboard_changes_that_field_only(chosen_home: HermesHome) -> None:
    before = chosen_home.config
    with chosen_home.web() as web:
        save(web, {"prefetch_limit": "7"})
        assert difference(before, chosen_home.config) == {"memory.pgvector.prefetch_limit": (3, 7)}
        save(web, {"prefetch_limit": "3"})
        assert difference(before, chosen_home.config) == {}


def test_saving_the_form_as_it_was_shown_changes_nothing(chosen_home: HermesHome) -> None:
    before = chosen_home.config
    with chosen_home.web() as web:
        fields = web.get(PAGE).json["fields"]
        assert {field["key"] for field in fields} >= {"prefetch_limit", "embed_url", "embed_model"}
        save(web, {field["key"]: field["value"] for field in fields if field["kind"] != "secret"})
    assert difference(before, chosen_home.config) == {}


def test_the_dashboards_form_of_a_profile_shows_and_saves_the_profiles_values(chosen_home: HermesHome) -> None:
    own, coder = chosen_home.config, chosen_home.path / "profiles" / "coder"
    coder.mkdir(parents=True)
    write_variables(coder, {"HERMES_PGVECTOR_DSN": chosen_home.dsn})
    (coder / "config.yaml").write_text(CODERS, encoding="utf-8")
    chosen_home.install_plugin(coder)
    page = f"{PAGE}?profile=coder"
    with chosen_home.web() as web:
        fields = {field["key"]: field["value"] for field in web.get(page).json["fields"] if field["kind"] != "secret"}
        answer = web.put(page, {"values": {**fields, "prefetch_limit": "8"}})
        assert answer.status == 200, answer
    assert fields["prefetch_limit"] == "9"
    assert fields["embed_url"] == "http://127.0.0.1:9/"
    assert chosen_home.config == own
    saved = yaml.safe_load((coder / "config.yaml").read_text(encoding="utf-8"))["memory"]["pgvector"]
    assert saved == {"prefetch_limit": 8, "embed_url": "http://127.0.0.1:9/"}


def test_the_dashboard_does_not_send_the_password_to_the_browser(chosen_home: HermesHome) -> None:
    with chosen_home.web() as web:
        assert chosen_home.password not in web.get(PAGE).body


def test_saving_in_an_unset_home_writes_that_field_only(make_home: MakeHome) -> None:
    home = make_home()
    before = home.config
    with home.web() as web:
        save(web, {"prefetch_limit": "7"})
    assert difference(before, home.config) == {"memory.pgvector.prefetch_limit": (None, 7)}


def save(web: WebServer, values: dict[str, Any]) -> None:
    answer = web.put(PAGE, {"values": values})
    assert answer.status == 200, answer


def test_pressing_enter_through_the_setup_of_pgvector_changes_nothing(chosen_home: HermesHome) -> None:
    before = chosen_home.config
    done = chosen_home.run("memory", "setup", "pgvector", stdin="\n" * 60)
    assert done.code == 0, done
    assert "Traceback" not in done.out + done.err
    assert chosen_home.password not in done.out + done.err
    assert difference(before, chosen_home.config) == {}


def test_setup_with_nobody_at_the_keyboard_ends_and_changes_nothing(chosen_home: HermesHome) -> None:
    before = chosen_home.config
    done = chosen_home.run("memory", "setup", "pgvector", stdin="")
    assert "Traceback" not in done.out + done.err
    assert difference(before, chosen_home.config) == {}


def test_choosing_pgvector_in_the_picker_and_pressing_enter_changes_nothing(chosen_home: HermesHome) -> None:
    before = chosen_home.config
    screen = at_a_terminal(chosen_home, "memory", "setup", first=b"\x1b[A\r", then=b"\r")
    assert "Memory provider setup" in screen
    assert chosen_home.password not in screen
    assert difference(before, chosen_home.config) == {}


def at_a_terminal(home: HermesHome, *arguments: str, first: bytes, then: bytes) -> str:
    """Run hermes on a pseudo terminal: `first` when it waits for the first time, `then` whenever it waits again."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [HERMES, *arguments], env={**home.environment, "TERM": "xterm", "LINES": "40", "COLUMNS": "120"},
        cwd=home.user, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    screen = b""
    keys, end = first, time.monotonic() + 60
    try:
        while time.monotonic() < end:
            ready, _, _ = select.select([ours], [], [], 0.7)
            if ready:
                try:
                    screen += os.read(ours, 65536)
                except OSError:
                    break
            elif process.poll() is not None:
                break
            elif screen:
                os.write(ours, keys)
                keys = then
        assert process.wait(10) == 0, screen.decode(errors="replace")
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
    return screen.decode(errors="replace")


def test_backup_is_complete_and_the_provider_has_no_part_in_any_warning(chosen_home: HermesHome) -> None:
    chosen_home.ask("This chat fills the journal before the backup is taken of it all.")
    target = chosen_home.user / "backup.zip"
    done = chosen_home.run("backup", "-o", str(target))
    assert done.code == 0, done
    assert "Backup complete" in done.out, done.out
    assert "backup_paths" not in done.out + done.err + chosen_home.logs()
    with zipfile.ZipFile(target) as archive:
        assert "plugins/pgvector/__init__.py" in archive.namelist()


def test_a_disabled_toolset_takes_the_recall_tools_along_and_doctor_says_so(
    make_home: MakeHome, llm: ScriptedLLM
) -> None:
    home = make_home(sections={"agent": {"disabled_toolsets": ["memory"]}})
    question = "Who keeps the keys of the boathouse while the harbour master is away?"
    home.ask(question)
    (request,) = llm.about(question)
    assert not {"memory", "recall_memory", "recall_conversation"} & set(request.tools)
    told = json.loads(home.command("hermes-pgvector", "doctor", "--json").out)
    (warning,) = [each for each in told["checks"] if each["name"] == "provider"]
    assert warning["level"] == "warning"
    assert "agent.disabled_toolsets" in warning["text"]
