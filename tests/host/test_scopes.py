"""The host's own scopes: what it keeps for one home, and which home it works for, in jobs and in requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from agent import secret_scope

from hermes_memory_pgvector.config import settings_file
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.provider import PgvectorMemoryProvider
from hermes_memory_pgvector.runtime.registry import close_all
from testing.hermes_home import write_variables
from testing.scopes import DSN, serving_several_homes, working_for
from testing.waiting import wait_until

EXPORTED, CODERS = "dbname=exported host=127.0.0.1 port=9", "dbname=of_the_coder host=127.0.0.1 port=9"


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home the process was started for, whose login comes from the environment, with a profile beside it."""
    home = tmp_path / "home"
    for each, limit in ((home, 3), (home / "profiles" / "coder", 7)):
        each.mkdir(parents=True)
        (each / "config.yaml").write_text(f"memory: {{pgvector: {{prefetch_limit: {limit}}}}}\n", encoding="utf-8")
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv(DSN, EXPORTED)
    yield home
    close_all(Deadline.after(10))


@pytest.fixture
def several() -> Iterator[None]:
    """The host serves several homes."""
    with serving_several_homes():
        yield


def test_a_scheduled_job_takes_nothing_from_the_environment_of_a_home_that_is_alone(launch: Path) -> None:
    with working_for(launch, secret_scope.build_profile_secret_scope(launch)):
        provider = PgvectorMemoryProvider()
        provider.initialize("job", hermes_home=str(launch), platform="cron")
        assert provider.get_status_config()["database"] == EXPORTED
    assert settings_file.load(launch).settings.dsn == EXPORTED


def test_a_provider_that_is_only_asked_answers_for_the_profile_in_charge(launch: Path) -> None:
    coder = launch / "profiles" / "coder"
    write_variables(coder, {DSN: CODERS})
    others_settings = "{tools: recall, allowed_themes: [coder], prefetch_limit: 7}"
    (coder / "config.yaml").write_text(f"memory: {{pgvector: {others_settings}}}\n", encoding="utf-8")
    with working_for(launch, None):
        provider = PgvectorMemoryProvider()
        own = (provider.get_status_config()["database"], len(provider.get_tool_schemas()), shown(provider))
        signature = provider.identity_signature()
    with working_for(coder, None):
        provider = PgvectorMemoryProvider()
        others = (provider.get_status_config()["database"], len(provider.get_tool_schemas()), shown(provider))
        assert provider.is_available()
        assert provider.identity_signature() != signature
    assert own == (EXPORTED, 3, "3")
    assert others == (CODERS, 2, "7")


def shown(provider: PgvectorMemoryProvider) -> object:
    """What the form shows of one setting."""
    (field,) = [each for each in provider.get_config_schema() if each["key"] == "prefetch_limit"]
    return field["default"]


def without_a_scope(home: Path) -> Mapping[str, str] | None:
    write_variables(home, {DSN: CODERS})
    return None


def of_a_secret_manager(home: Path) -> Mapping[str, str] | None:
    return {**secret_scope.build_profile_secret_scope(home), DSN: CODERS}


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("scope", [without_a_scope, of_a_secret_manager])
def test_where_the_host_refuses_the_environment_a_home_has_its_own_variables(
    launch: Path, scope: Callable[[Path], Mapping[str, str] | None]
) -> None:
    coder = launch / "profiles" / "coder"
    with pytest.raises(secret_scope.UnscopedSecretError):
        secret_scope.get_secret(DSN)
    with working_for(coder, scope(coder)):
        provider = PgvectorMemoryProvider()
        assert provider.get_status_config()["database"] == CODERS
    with working_for(launch, None):
        provider = PgvectorMemoryProvider()
        assert "embedded" in provider.get_status_config()["database"]
    assert settings_file.load(coder).settings.dsn == CODERS


@pytest.mark.usefixtures("several")
def test_what_stands_in_env_is_read_there_whatever_the_hosts_reader_makes_of_it(launch: Path) -> None:
    (launch / ".env").write_text(f'{DSN}={CODERS} # for now\nKEY="with \\" a quote"\nTAKEN_OUT=old\n', encoding="utf-8")
    with working_for(launch, {**secret_scope.build_profile_secret_scope(launch), "MANAGED": "elsewhere"}):
        PgvectorMemoryProvider()
    assert settings_file.load(launch).settings.dsn == CODERS
    assert settings_file.secret(launch, "KEY") == 'with " a quote'
    assert settings_file.secret(launch, "MANAGED") == "elsewhere"
    write_variables(launch, {DSN: EXPORTED})
    wait_until(lambda: settings_file.load(launch).settings.dsn == EXPORTED)
    assert settings_file.secret(launch, "TAKEN_OUT") is None


@pytest.mark.usefixtures("several")
def test_a_scope_that_cannot_be_told_is_one_that_holds_nothing(launch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_scope, "build_profile_secret_scope", lambda _: secret_scope.get_secret(DSN))
    with working_for(launch, None):
        provider = PgvectorMemoryProvider()
        assert "embedded" in provider.get_status_config()["database"]
