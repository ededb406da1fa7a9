"""Connections: few, bounded in time, gone when idle."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import psycopg
import pytest

from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseUnavailable
from hermes_memory_pgvector.postgres.conninfo import complete_conninfo
from hermes_memory_pgvector.postgres.conventions import EARLIEST, LATEST
from hermes_memory_pgvector.postgres.pool import Pool
from testing.postgres import Database
from testing.stored import Stored
from testing.waiting import promptly, wait_until


@pytest.fixture
def pool(database: Database) -> Iterator[Pool]:
    made = Pool(lambda _: database.runtime_dsn, maximum=3, connect_seconds=3)
    yield made
    made.close()


@pytest.mark.usefixtures("pool")
def test_nothing_is_opened_before_it_is_needed(database: Database) -> None:
    assert Stored(database.owner_dsn).connections() == 0


def test_a_connection_is_used_again(pool: Pool) -> None:
    backends = set()
    for _ in range(10):
        with pool.connection(Deadline.after(10)) as connection:
            backends.add(connection.info.backend_pid)
    assert len(backends) == 1


def test_a_time_that_python_cannot_hold_fails_no_statement(pool: Pool) -> None:
    with pool.connection(Deadline.after(10)) as connection:
        row = connection.execute(
            "SELECT 'infinity'::timestamptz, '-infinity'::timestamptz, '4713-01-01 BC'::timestamptz,"
            " '294276-12-31'::timestamptz, '2026-02-01 12:00+00'::timestamptz"
        ).fetchone()
    assert row == (LATEST, EARLIEST, EARLIEST, LATEST, datetime(2026, 2, 1, 12, tzinfo=UTC))
    # And whoever shows it can do so in every zone.
    for hours in (-14, 14):
        assert LATEST.astimezone(timezone(timedelta(hours=hours))) == LATEST
        assert EARLIEST.astimezone(timezone(timedelta(hours=hours))) == EARLIEST


def test_at_most_the_maximum_is_open_however_many_ask(pool: Pool, database: Database) -> None:
    answers: list[int] = []

    def ask() -> None:
        with pool.connection(Deadline.after(30)) as connection:
            row = connection.execute("SELECT 1 FROM pg_sleep(0.02)").fetchone()
            answers.append(1 if row else 0)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == 20
    assert Stored(database.owner_dsn).connections() <= 3


def test_waiting_for_a_connection_ends_at_the_deadline(pool: Pool) -> None:
    held = [pool.connection(Deadline.after(30)) for _ in range(3)]
    for each in held:
        each.__enter__()
    with promptly(), pytest.raises(DatabaseUnavailable), pool.connection(Deadline.after(0.3)):
        pass
    for each in held:
        each.__exit__(None, None, None)


def test_a_statement_ends_at_the_deadline(pool: Pool) -> None:
    slow = pytest.raises(DatabaseUnavailable, match="has not answered within the time given")
    with promptly(), slow, pool.connection(Deadline.after(0.5)) as connection:
        connection.execute("SELECT pg_sleep(30)")
    with pool.connection(Deadline.after(10)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_server_that_went_away_while_idle_is_noticed_before_use(pool: Pool, database: Database) -> None:
    with pool.connection(Deadline.after(10)) as connection:
        pid = connection.info.backend_pid
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(%s)", (pid,))
        wait_until(lambda: owner.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is None)
    with pool.connection(Deadline.after(10)) as connection:
        assert connection.info.backend_pid != pid


def test_a_broken_connection_leaves_no_text_of_the_server_in_the_log(
    pool: Pool, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        with pytest.raises(DatabaseUnavailable):
            _end_in_the_middle(pool, database)
        psycopg_log = logging.getLogger("psycopg")
        psycopg_log.warning("error ignored terminating %s: %s", "connection", "text of the server")
        logging.getLogger("psycopg.transaction").warning("error ignored in rollback: %s", "text of the server")
        psycopg_log.warning("something else")
    assert "administrator" not in caplog.text
    assert "text of the server" not in caplog.text
    assert "something else" in caplog.text


def _end_in_the_middle(pool: Pool, database: Database) -> None:
    with (
        pool.reading(Deadline.after(10)) as connection,
        psycopg.connect(database.owner_dsn, autocommit=True) as owner,
    ):
        owner.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        connection.execute("SELECT 1 FROM pg_sleep(1)").fetchall()


def test_idle_connections_are_closed(pool: Pool, database: Database) -> None:
    with pool.connection(Deadline.after(10)):
        pass
    pool.reap()
    assert Stored(database.owner_dsn).connections() == 1
    pool.reap(idle_seconds=0)
    wait_until(lambda: Stored(database.owner_dsn).connections() == 0)


def test_a_connection_left_in_a_transaction_is_not_used_again(pool: Pool) -> None:
    with pool.connection(Deadline.after(10)) as connection:
        connection.execute("BEGIN")
        first = connection.info.backend_pid
    with pool.connection(Deadline.after(10)) as connection:
        assert connection.info.backend_pid != first


def test_no_setting_outlives_its_transaction(pool: Pool) -> None:
    with pool.transaction(Deadline.after(7)) as connection:
        (inside,) = connection.execute("SHOW statement_timeout").fetchone() or ("",)
        assert inside not in ("0", "")
    with pool.connection(Deadline.after(10)) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_a_refused_connection_says_why_at_once() -> None:
    pool = Pool(lambda _: "host=127.0.0.1 port=9 dbname=x user=y password=secret", maximum=2, connect_seconds=3)
    with promptly(), pytest.raises(DatabaseUnavailable) as raised, pool.connection(Deadline.after(30)):
        pass
    assert "secret" not in str(raised.value)
    pool.close()


def test_a_closed_pool_refuses_and_leaves_nothing_open(pool: Pool, database: Database) -> None:
    with pool.connection(Deadline.after(10)):
        pool.close()
    with pytest.raises(DatabaseUnavailable), pool.connection(Deadline.after(1)):
        pass
    wait_until(lambda: Stored(database.owner_dsn).connections() == 0)


def test_the_operators_own_options_win() -> None:
    made = complete_conninfo("dbname=x options='-c search_path=mine' application_name=own connect_timeout=9", 3)
    assert "search_path=mine" in made
    assert "application_name=own" in made
    assert "connect_timeout=9" in made
