"""SQL functions that compare a replica with its primary, each by itself."""

from __future__ import annotations

from typing import Any

import psycopg

from testing.postgres import Database


def state(connection: psycopg.Connection[Any], *writers: str) -> tuple[Any, ...]:
    row = connection.execute(
        "SELECT changes, mirrored IS NOT NULL, seqs, is_standby, wal > 0 FROM hermes_replica_state('home', %s)",
        (list(writers),),
    ).fetchone()
    assert row is not None
    return tuple(row)


def test_replica_state_tells_how_far_a_server_is_whatever_the_transaction_is_about(database: Database) -> None:
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("INSERT INTO journal_writers (writer, seq, home_id) VALUES ('running', 7, 'home')")
        owner.execute(
            "INSERT INTO journals_ended (bucket, home_id, writers, seqs)"
            " VALUES ('ended', 'home', '{ended1,ended2}', '{3,4}')"
        )
        with psycopg.connect(database.runtime_dsn, autocommit=True) as agent:
            assert state(agent, "ended2", "running", "nobody") == (0, False, [4, 7, None], False, True)
            owner.execute("INSERT INTO memory_files (home_id, target, entries) VALUES ('home', 'memory', '[]')")
            assert state(agent) == (0, True, [], False, True)


def test_note_change_counts_a_transaction_of_an_operator_once_and_a_read_not_at_all(database: Database) -> None:
    """hermes_note_change() is a trigger of the audit log."""
    note = "INSERT INTO audit_log (actor, action) SELECT 'test', %s FROM generate_series(1, 3)"
    with psycopg.connect(database.operator_dsn, autocommit=True) as operator:
        operator.execute(note, ("edit",))
        assert state(operator)[0] == 1
        operator.execute(note, ("read",))
        assert state(operator)[0] == 1
        with operator.transaction():
            operator.execute(note, ("mute",))
            # Nobody waits for it before the transaction ends.
            assert state(operator)[0] == 1
        assert state(operator)[0] == 2
