"""What goes wrong in a hook: the agent goes on, the operator learns what it was, and nobody reads content in a log."""

from __future__ import annotations

import logging

import pytest

from hermes_memory_pgvector import hook_guard
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError
from hermes_memory_pgvector.hook_guard import guarded
from hermes_memory_pgvector.service import Service
from testing.waiting import wait_until

CONTENT = "the nightly password is swordfish"


class Provider:
    """Hooks that fail."""

    @guarded("default")
    def ours(self) -> str:
        raise ConfigError("embed_url must begin with http:// or https://")

    @guarded("default")
    def foreign(self) -> str:
        return str(int(CONTENT))

    @guarded("default")
    def chained(self) -> str:
        try:
            return str(int(CONTENT))
        except ValueError as error:
            raise RuntimeError(CONTENT) from error


@pytest.fixture(autouse=True)
def nothing_told_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_guard, "failures", hook_guard.HookFailures())


def test_the_sentence_of_our_own_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert Provider().ours() == "default"
    assert caplog.messages == ["ours failed: embed_url must begin with http:// or https://"]


@pytest.mark.parametrize("hook", ["foreign", "chained"])
def test_a_foreign_error_is_logged_by_class_and_place_only(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert getattr(Provider(), hook)() == "default"
    (record,) = caplog.records
    assert record.exc_info is None
    assert "test_hook_guard.py" in record.getMessage()
    assert ("ValueError" if hook == "foreign" else "RuntimeError") in record.getMessage()
    assert "swordfish" not in caplog.text


def test_the_same_failure_is_told_once_and_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        Provider().ours()
    Provider().foreign()
    assert len(caplog.records) == 2
    assert hook_guard.failures.count == 6
    assert hook_guard.failures.latest.startswith("foreign failed: unexpected ValueError")
    monkeypatch.setattr(hook_guard, "REPEAT_SECONDS", 0.0)
    Provider().ours()
    assert caplog.messages[-1].endswith("(4 more times since the last such line)")


def test_a_background_thread_tells_no_content_either(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Service):
        def run_once(self) -> float:
            return float(CONTENT)

        def on_crash(self, error: BaseException) -> float:
            super().on_crash(error)
            self.end()
            return 0.0

    service = Failing("hermes-pgvector-test")
    service.start()
    wait_until(lambda: not service.is_running)
    assert service.stop(Deadline.after(1))
    assert "hermes-pgvector-test goes on after unexpected ValueError" in caplog.text
    assert "swordfish" not in caplog.text


def test_a_librarys_panic_ends_no_background_thread() -> None:
    class Panic(BaseException):
        """As what a library written in Rust raises."""

    class Panicking(Service):
        runs = 0

        def run_once(self) -> float:
            self.runs += 1
            if self.runs == 1:
                raise Panic
            return 60.0

        def on_crash(self, error: BaseException) -> float:
            super().on_crash(error)
            return 0.0

    service = Panicking("hermes-pgvector-test")
    service.start()
    wait_until(lambda: service.runs > 1)
    assert service.is_running
    assert service.stop(Deadline.after(1))
