"""Every error of the driver is decided: retry, reject or hold."""

from __future__ import annotations

import psycopg
import psycopg.errors
import pytest

from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseError, DatabaseRejected, DatabaseUnavailable
from hermes_memory_pgvector.postgres.errors import translate, translated


def kinds(parent: type[psycopg.Error] = psycopg.Error) -> set[type[psycopg.Error]]:
    """Every error of the driver, those it makes for SQLSTATEs included."""
    return {parent}.union(*map(kinds, parent.__subclasses__()))


def test_every_foreign_error_becomes_one_of_ours_without_its_text() -> None:
    for kind in kinds():
        ours = translate(kind("secret text with password=hunter2"))
        assert type(ours) in (DatabaseUnavailable, DatabaseRejected, DatabaseDenied), kind
        assert "hunter2" not in str(ours)
        assert kind.__name__ in str(ours)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("08006", DatabaseUnavailable), ("57P01", DatabaseUnavailable), ("53300", DatabaseUnavailable),
        ("40001", DatabaseUnavailable), ("55P03", DatabaseUnavailable), ("25006", DatabaseUnavailable),
        ("58030", DatabaseUnavailable), ("XX000", DatabaseUnavailable), ("57014", DatabaseUnavailable),
        ("53100", DatabaseUnavailable), ("22021", DatabaseRejected), ("23514", DatabaseRejected),
        ("54000", DatabaseRejected), ("42P01", DatabaseDenied), ("42501", DatabaseDenied),
        ("28P01", DatabaseDenied), ("3D000", DatabaseDenied),
    ],
)  # fmt: skip
def test_the_sqlstate_decides(state: str, kind: type[DatabaseError]) -> None:
    ours = translate(psycopg.errors.lookup(state)())
    assert type(ours) is kind
    assert ours.sqlstate == state


def test_a_full_disk_and_a_standby_are_told_in_words() -> None:
    assert "the disk of the database server is full" in str(translate(psycopg.errors.DiskFull()))
    assert "it is a standby or set to read-only" in str(translate(psycopg.errors.ReadOnlySqlTransaction()))


def test_a_missing_schema_names_the_command() -> None:
    assert str(translate(psycopg.errors.UndefinedTable())).endswith("run: hermes-pgvector migrate")


def test_data_the_driver_itself_refuses_is_rejected() -> None:
    assert isinstance(translate(psycopg.DataError("NUL")), DatabaseRejected)
    with pytest.raises(DatabaseRejected), translated():
        "\ud800".encode()


def test_the_drivers_text_does_not_travel_in_the_chain() -> None:
    with pytest.raises(DatabaseUnavailable) as caught, translated():
        raise psycopg.OperationalError("password=hunter2")
    assert caught.value.__suppress_context__
