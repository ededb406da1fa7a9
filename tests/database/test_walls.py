"""Row-level security: a transaction sees what it says it is about, and every table with a theme is behind it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import DatabaseDenied, DatabaseError, DatabaseUnavailable
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import reach
from hermes_memory_pgvector.store.errors import translated
from hermes_memory_pgvector.store.pool import Connection, Pool
from hermes_memory_pgvector.store.reach import Reach
from testing.postgres import DIM, MODEL, Database

# Tables without a theme: why nobody needs a wall there.
OPEN_TABLES = {
    "embedding_models": "names of models",
    "erasure_key": "one key for everybody; single logins may not read it",
    "hermes_pgvector_installation": "an id",
    "hermes_pgvector_migrations": "versions",
    "lexeme_statistics": "words without rows; single logins may not read it",
    "reembedding": "how far a change of the model is: numbers",
}
# Columns of text that plans may know about: names, kinds and ids, which do not quote anybody.
NAMES = {
    "agent_identity", "theme", "old", "new", "near_themes", "scope", "index_name", "session_id", "child_session_id",
    "parent_session_id", "home_id", "id", "writer", "writers", "bucket", "login", "actor", "granted_by", "written_by",
    "role", "target", "origin", "trust", "kind", "caller", "action", "source", "version", "layout", "name", "sha256",
    "moved_to", "degraded", "refused",
}  # fmt: skip
UNREADABLE = {("lexeme_statistics", "lexeme")}
"""Single logins may not read it, and how common words are is what it is for."""
TENANTS = ["conversations", "memory_entries", "theme_growth"]


@pytest.fixture
def filled(database: Database) -> Database:
    """Three themes, one of them private, each with a turn and a memory."""
    with psycopg.connect(database.operator_dsn) as connection:
        for theme in ("launch", "kitchen", "dm-1"):
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, 's', 'user', %s)",
                (theme, f"canary of {theme}"),
            )
            connection.execute(
                "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, 'memory', %s)",
                (theme, f"canary of {theme}"),
            )
    return database


@contextlib.contextmanager
def pool_of(dsn: str) -> Iterator[Pool]:
    pool = Pool(lambda _: dsn, maximum=2, connect_seconds=5)
    try:
        yield pool
    finally:
        pool.close()


def themes(connection: Connection, table: str = "conversations") -> set[str]:
    rows = connection.execute(sql.SQL("SELECT agent_identity FROM {}").format(sql.Identifier(table))).fetchall()
    return {str(row[0]) for row in rows}


def test_every_table_is_behind_a_forced_policy_or_named_as_open(empty_database: Database) -> None:
    migrate.apply(empty_database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
    # A model that comes later brings tables of its own.
    migrate.apply(empty_database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec("another", 32))
    with psycopg.connect(empty_database.owner_dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity, count(p.oid),"
            " EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'agent_identity')"
            " FROM pg_class AS c LEFT JOIN pg_policy AS p ON p.polrelid = c.oid"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') GROUP BY c.oid"
        ).fetchall()
        views = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace"
            " AND NOT coalesce(reloptions @> '{security_invoker=true}', false)"
        ).fetchone()
    assert {name for name, is_forced, _, _ in rows if not is_forced} == set(OPEN_TABLES)
    with_theme = {name: policies for name, _, policies, has_theme in rows if has_theme}
    assert {"turn_vectors_1", "memory_vectors_2", "recall_log"} <= with_theme.keys()
    assert set(with_theme.values()) == {5}
    assert views == (0,)


def test_plans_know_nothing_of_a_text_that_is_not_a_name(database: Database) -> None:
    """Statistics are over the rows of everybody, and estimates tell them: a new column needs a word about it."""
    with psycopg.connect(database.owner_dsn) as owner:
        kept = owner.execute(
            "SELECT c.relname, a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0"
            " AND NOT a.attisdropped AND coalesce(a.attstattarget, -1) <> 0 AND format_type(a.atttypid, NULL)"
            " NOT IN ('bigint', 'integer', 'smallint', 'boolean', 'real', 'double precision', 'uuid', 'bigint[]',"
            " 'integer[]', 'timestamp with time zone', 'date', 'interval', 'numeric')"
        ).fetchall()
    assert {(table, column) for table, column in kept if column not in NAMES} == UNREADABLE


def test_whoever_says_nothing_sees_and_stores_nothing(filled: Database) -> None:
    with psycopg.connect(filled.runtime_dsn, autocommit=True) as connection:
        for table in TENANTS:
            assert themes(connection, table) == set()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('a', 's', 'user', 'x')"
            )
        assert connection.execute("UPDATE conversations SET content = ''").rowcount == 0
        assert connection.execute("DELETE FROM memory_entries").rowcount == 0


@pytest.mark.parametrize(
    ("about", "seen"),
    [
        (reach.NOTHING, set()),
        (reach.within("launch"), {"launch"}),
        (reach.within("launch", "dm-1"), {"launch", "dm-1"}),
        (reach.within("nobody's"), set()),
        (reach.within('lau"nch,', "{kitchen}", "\\"), set()),
        (reach.everywhere("kitchen"), {"launch", "kitchen"}),
        (reach.everywhere("dm-1"), {"launch", "kitchen", "dm-1"}),
        *((each, {"launch", "kitchen", "dm-1"}) for each in (reach.WRITER, reach.UPKEEP, reach.OVERVIEW)),
    ],
)
def test_a_transaction_sees_what_it_is_about(filled: Database, about: Reach, seen: set[str]) -> None:
    with pool_of(filled.runtime_dsn) as pool:
        with pool.transaction(Deadline.after(10), reach=about) as connection:
            for table in TENANTS:
                assert themes(connection, table) == seen
        with pool.reading(Deadline.after(10), about) as connection:
            assert themes(connection) == seen
        # Nothing of it stays with the connection.
        with pool.connection(Deadline.after(10)) as connection:
            assert themes(connection) == set()


@pytest.mark.parametrize("about", [reach.OVERVIEW, reach.everywhere("launch"), reach.within("launch")])
def test_a_transaction_changes_no_more_than_it_is_about(filled: Database, about: Reach) -> None:
    with pool_of(filled.runtime_dsn) as pool, pool.transaction(Deadline.after(10), reach=about) as connection:
        changed = connection.execute("UPDATE conversations SET content = 'x'").rowcount
        assert changed == (0 if about is reach.OVERVIEW else 1)
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute(
                "INSERT INTO memory_entries (agent_identity, target, content) VALUES ('kitchen', 'memory', 'x')"
            )
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("INSERT INTO theme_growth (agent_identity) VALUES ('kitchen')")
        if changed:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute("UPDATE conversations SET agent_identity = 'kitchen'")


def test_a_theme_is_seen_under_the_name_it_has_now(filled: Database) -> None:
    with psycopg.connect(filled.operator_dsn) as connection:
        connection.execute("INSERT INTO theme_aliases (old, new) VALUES ('former', 'launch'), ('home', 'dm-1')")
    with pool_of(filled.runtime_dsn) as pool:
        for about, seen in [
            (reach.within("former"), {"launch"}),
            (reach.within("home"), set()),
            (reach.within("home", own="home"), {"dm-1"}),
        ]:
            with pool.transaction(Deadline.after(10), reach=about) as connection:
                assert themes(connection) == seen


def test_words_are_looked_up_within_reach_alone(filled: Database) -> None:
    looking = """
        SELECT l.themes FROM hermes_look_up_terms(
            NULL::conversations, 'dm-1', true, NULL, NULL, NULL, ARRAY['canari'::tsquery], '{1}', 99, 99) AS l"""
    with pool_of(filled.runtime_dsn) as pool:
        for about, seen in [
            (reach.NOTHING, set()),
            (reach.within("launch"), {"launch"}),
            (reach.everywhere("dm-1"), {"dm-1", "kitchen", "launch"}),
        ]:
            with pool.transaction(Deadline.after(10), reach=about) as connection:
                ((found,),) = connection.execute(looking.encode()).fetchall()
                assert set(found or ()) == seen  # type: ignore[call-overload]


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
    migrate.apply(plain_owner.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
    with psycopg.connect(plain_owner.operator_dsn, autocommit=True) as runtime:
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
            owner.execute("ANALYZE conversations")
        runtime.execute("SELECT hermes_refresh_statistics()")
        known = runtime.execute("SELECT fraction FROM lexeme_statistics WHERE lexeme = 'zebra'").fetchall()
        assert known == [(1.0,)]
        runtime.execute("DELETE FROM conversations WHERE agent_identity = 'a'")
    migrate.apply(plain_owner.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec("another", 32))
    with psycopg.connect(plain_owner.owner_dsn) as owner:
        assert themes(owner, "theme_growth") == {"a"}


def test_migrating_again_leaves_every_policy_alone(database: Database) -> None:
    def policies() -> list[tuple[object, ...]]:
        with psycopg.connect(database.owner_dsn) as connection:
            return connection.execute("SELECT oid FROM pg_policy ORDER BY 1").fetchall()

    before = policies()
    migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
    assert policies() == before


def _as_before(owner: psycopg.Connection) -> None:
    """The database as the version before left it: no policy, no column or table that came with them."""
    for table, policy in owner.execute("SELECT polrelid::regclass::text, polname FROM pg_policy").fetchall():
        owner.execute(f'DROP POLICY "{policy}" ON {table}'.encode())
        owner.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY".encode())
    owner.execute("DROP TABLE login_themes, login_grants")
    for table in ("memory_files", "journal_writers", "journals_ended", "dead_letters", "erasure_receipts"):
        owner.execute(f"ALTER TABLE {table} DROP COLUMN login".encode())
    owner.execute("DELETE FROM hermes_pgvector_migrations WHERE name IN ('walls', 'text_statistics')")


def test_an_upgrade_under_load_waits_for_nobody_long_and_older_processes_hold_their_writes(database: Database) -> None:
    say = "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES ('a', 's', 'user', %s)"
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        _as_before(owner)
    stored: list[str] = []
    refusals: list[DatabaseError] = []
    is_started, is_over = threading.Event(), threading.Event()

    def older_process(number: int) -> None:
        """Writes, and does not say what it is about."""
        with psycopg.connect(database.runtime_dsn) as connection:
            for count in range(100_000):
                text = f"{number}/{count}"
                try:
                    with translated(), connection.transaction():
                        connection.execute("SELECT count(*) FROM journal_writers")
                        connection.execute(say, (text,))
                        connection.execute("SELECT count(*) FROM memory_operations")
                except DatabaseError as error:
                    refusals.append(error)
                    if not isinstance(error, DatabaseUnavailable):
                        return
                else:
                    stored.append(text)
                    is_started.set()
                if is_over.is_set():
                    return

    threads = [threading.Thread(target=older_process, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert is_started.wait(30)
    try:
        migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        for thread in threads:
            thread.join(30)
    finally:
        is_over.set()
    assert not any(thread.is_alive() for thread in threads)
    # Refused as a matter of configuration, which the journal waits for: never as bad data.
    final = [error for error in refusals if not isinstance(error, DatabaseUnavailable)]
    assert [(type(error), error.sqlstate) for error in final] == [(DatabaseDenied, "42501")] * 3
    with pool_of(database.runtime_dsn) as pool, pool.transaction(Deadline.after(10), reach=reach.WRITER) as connection:
        connection.execute(say, ("of the new version",))
        rows = connection.execute("SELECT content FROM conversations").fetchall()
    assert sorted(str(row[0]) for row in rows) == sorted([*stored, "of the new version"])
