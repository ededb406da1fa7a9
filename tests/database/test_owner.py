"""Whoever owns the tables sees every row: there is no row-level security beside the statements."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.schema import migrate
from hermes_memory_pgvector.schema.model_tables import NewModel
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from testing.postgres import DIM, MODEL, Database


def test_no_table_has_a_policy(database: Database) -> None:
    with psycopg.connect(database.owner_dsn) as owner:
        assert owner.execute("SELECT polname FROM pg_policy").fetchall() == []
        assert owner.execute("SELECT relname FROM pg_class WHERE relrowsecurity").fetchall() == []


@pytest.fixture
def plain_owner(postgres_server: object, empty_database: Database) -> Iterator[Database]:
    """A database whose owner is no superuser, as on a managed server."""
    role = f"owner_of_{empty_database.name}"
    with psycopg.connect(empty_database.owner_dsn, autocommit=True) as admin:
        name = sql.Identifier(role)
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x'").format(name))
        admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(empty_database.name), name))
        admin.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(name))
        admin.execute("CREATE EXTENSION vector")
        owner = make_conninfo(empty_database.owner_dsn, user=role, password="x", passfile="")
        yield Database(owner, empty_database.runtime_dsn, empty_database.name)
        admin.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(name))
        admin.execute(sql.SQL("DROP OWNED BY {}").format(name))
        admin.execute(sql.SQL("DROP ROLE {}").format(name))


def test_an_owner_that_is_no_superuser_goes_on_seeing_everything(plain_owner: Database) -> None:
    migrate.apply(plain_owner.owner_dsn, runtime_role=RUNTIME_ROLE, model=NewModel(MODEL, DIM))
    with psycopg.connect(plain_owner.runtime_dsn, autocommit=True) as runtime:
        for number in range(40):
            runtime.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('a', 's', 'user', %s)",
                (f"zebra {number}",),
            )
        with (
            psycopg.connect(plain_owner.owner_dsn) as owner,
            # As when an installation moves in.
            owner.cursor().copy("COPY conversations (agent_identity, session_id, role, content) FROM STDIN") as copy,
        ):
            copy.write_row(("a", "s", "user", "a zebra that was brought"))
    with psycopg.connect(plain_owner.owner_dsn) as owner:
        assert owner.execute("SELECT count(*) FROM conversations WHERE lexemes @@ 'zebra'").fetchone() == (41,)
