# ruff: noqa: E501 - statements stand here as somebody would type them
"""Logins of single machines: each sees its themes and nothing else, whatever it says and whatever it tries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hermes_memory_pgvector.admin import logins, migrate
from hermes_memory_pgvector.admin.logins import Wanted
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.deadline import Deadline
from hermes_memory_pgvector.errors import ConfigError, DatabaseDenied, DatabaseRejected, SchemaError
from hermes_memory_pgvector.server.server import RUNTIME_ROLE
from hermes_memory_pgvector.store import gate, schema, watermarks
from hermes_memory_pgvector.store.pool import Pool
from hermes_memory_pgvector.store.reach import OPERATOR, OVERVIEW, WRITER
from testing.postgres import DIM, MODEL, Database

CANARY = "zx81canary"
VECTOR = "[" + ",".join(["0.125"] * DIM) + "]"


@dataclass(frozen=True, slots=True)
class Fleet:
    """A database with some themes, and two logins that see a part of it."""

    database: Database
    laptop: str
    """Reads and writes launch and team-*, and begins themes."""
    screen: str
    """Reads kitchen."""

    def dsn(self, login: str, **more: str) -> str:
        return make_conninfo(self.database.runtime_dsn, user=login, password="x", passfile="", **more)


def fill(connection: psycopg.Connection[Any], theme: str) -> None:
    """Put the canary of a theme wherever words of it can be."""
    text = f"{CANARY} {theme} budget of the week"
    row = connection.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, %s, 'user', %s) RETURNING id",
        (theme, f"session {CANARY} {theme}", text),
    ).fetchone()
    assert row is not None
    connection.execute(
        "INSERT INTO memory_entries (agent_identity, target, content) VALUES (%s, 'memory', %s)", (theme, text)
    )
    connection.execute(
        "INSERT INTO turn_vectors_1 (agent_identity, id, ts, content_hash, embedding)"
        " VALUES (%s, %s, now(), 1, %s::halfvec)",
        (theme, row[0], VECTOR),
    )
    connection.execute(
        "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)"
        " VALUES (%s, 'memory', 1, %s, 1, 0, 'add', %s, now())",
        (theme, f"w {theme}", text),
    )
    connection.execute(
        "INSERT INTO pending_vectors (agent_identity, kind, id) VALUES (%s, 'turn', %s)", (theme, row[0])
    )
    connection.execute(
        "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, query, milliseconds)"
        " VALUES (%s, now(), 'tool', 'turn', 'current', %s, 1)",
        (theme, text),
    )
    connection.execute(
        "INSERT INTO memory_files (home_id, target, entries) VALUES (%s, 'memory', to_jsonb(ARRAY[%s]))", (theme, text)
    )
    connection.execute(
        "INSERT INTO dead_letters (writer, seq, payload, reason) VALUES (%s, 1, convert_to(%s, 'UTF8'), 'x')",
        (theme, text),
    )
    connection.execute("INSERT INTO journal_writers (writer, seq) VALUES (%s, 7)", (f"writer {CANARY} {theme}",))
    connection.execute(
        "INSERT INTO audit_log (actor, action, theme, subject) VALUES ('x', 'read', %s, %s)",
        (theme, f"{CANARY} {theme}"),
    )
    connection.execute(
        "INSERT INTO agents (agent_identity, home_id, host, kind, version) VALUES (%s, %s, '', '', '')",
        (theme, f"{CANARY} {theme}"),
    )
    connection.execute(
        "INSERT INTO agent_processes (id, home_id, host, home, pid, command, kind, version, started_at, seen_at,"
        " expected_at, state, counters) VALUES (%s, '', '', %s, 1, '', '', '', now(), now(), now(), '{}', '{}')",
        (f"process of {theme}", f"{CANARY} {theme}"),
    )
    connection.execute(
        "INSERT INTO past_processes (home_id, processes, last_seen, counters) VALUES (%s, 1, now(), '{}')",
        (f"{CANARY} {theme}",),
    )
    connection.execute("INSERT INTO theme_aliases (old, new) VALUES (%s, %s)", (f"{CANARY} old {theme}", theme))
    # Of a session: its rows are held, and its name stands in the rule.
    connection.execute("INSERT INTO quarantines (actor, session_id) VALUES ('op', %s)", (f"poisoned {CANARY} {theme}",))
    connection.execute(
        "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, %s, 'user', 'poison')",
        (theme, f"poisoned {CANARY} {theme}"),
    )


@pytest.fixture
def fleet(database: Database) -> Iterator[Fleet]:
    """Filled as the fleet's own role fills it, and analyzed."""
    with psycopg.connect(database.operator_dsn) as connection:
        for theme in ("launch", "kitchen", "team-a", "dm-1"):
            fill(connection, theme)
    with psycopg.connect(database.owner_dsn, autocommit=True) as owner:
        owner.execute("ANALYZE")
        owner.execute("SELECT hermes_refresh_statistics()")
        # As on any server that nobody locked down.
        owner.execute(f"GRANT TEMPORARY ON DATABASE {database.name} TO PUBLIC".encode())
    made = Fleet(database, f"laptop_{database.name}", f"screen_{database.name}")
    grant(made, made.laptop, "launch", "team-*", may_create=True)
    grant(made, made.screen, "kitchen", may_write=False)
    yield made
    for login in (made.laptop, made.screen):
        if any(each.login == login for each in logins.listed(database.owner_dsn)):
            logins.revoke(database.owner_dsn, login, actor="test", home_id="")


def grant(fleet: Fleet, login: str, *themes: str, **more: Any) -> logins.Outcome:
    wanted = Wanted(login, themes, **more)
    return logins.grant(fleet.database.owner_dsn, wanted, password="x", actor="test", home_id="")


OPEN = "SELECT set_config('hermes.purpose', 'operator', false), set_config('hermes.themes', '{kitchen,dm-1}', false)"
TABLES = [
    "conversations", "memory_entries", "memory_operations", "memory_sources", "memory_files",
    "dead_letters", "recall_log", "delegations", "pending_vectors", "theme_growth", "theme_indexes",
    "theme_aliases", "journal_writers", "journals_ended", "audit_log", "erasure_receipts",
    "login_grants", "login_themes", "turn_vectors_1", "memory_vectors_1", "conversations_embedded",
    "memory_entries_embedded", "tombstones", "erasure_key", "lexeme_statistics",
    "hermes_pgvector_installation", "embedding_models", "quarantines", "quarantined_turns", "quarantined_memories",
    "agents", "agent_processes", "past_processes",
]  # fmt: skip
SEARCH = (
    "SELECT * FROM hermes_search(NULL::{source}, '{theme}', {everywhere}, NULL, NULL, NULL, ARRAY['{word}'], ARRAY['{word}'],"
    " ARRAY['{word}'], ARRAY[1.0::real], ARRAY[false], {vector}, {limit}, 0, 0.0001, false, 0, false, NULL, NULL, NULL, NULL, 0,"
    " now(), false, 100)"
)
NEAR = f"'{VECTOR}'::halfvec"
# What somebody with a psql and a minion's password may try. Each is a line of statements; the last one's rows are looked at.
ATTEMPTS = {
    **{f"read {table}": [f"SELECT t.*, t::text FROM {table} AS t"] for table in TABLES},
    **{
        f"copy {table} out": [f"COPY (SELECT * FROM {table}) TO STDOUT"]
        for table in ("conversations", "turn_vectors_1")
    },
    "rows of a theme by name": ["SELECT content FROM conversations WHERE agent_identity = 'kitchen'"],
    "a condition that tells what it sees": [
        "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " 'BEGIN RAISE NOTICE ''%'', $1; RETURN true; END'",
        "SELECT content FROM conversations WHERE pg_temp.tell(content)",
    ],
    "an error that quotes a row": ["SELECT content::integer FROM conversations WHERE agent_identity = 'kitchen'"],
    "a division by zero for a row that matches": [
        f"SELECT 1 / (CASE WHEN content LIKE '%{CANARY} kitchen%' THEN 0 ELSE 1 END), 'found' FROM conversations"
        " WHERE agent_identity = 'kitchen'"
    ],
    "words by index": [f"SELECT content FROM conversations WHERE lexemes @@ '{CANARY}'::tsquery"],
    "statistics of the planner": ["SELECT * FROM pg_stats WHERE schemaname = 'public'"],
    "statistics themselves": ["SELECT * FROM pg_statistic"],
    "ts_stat": ["SELECT * FROM ts_stat('SELECT lexemes FROM conversations')"],
    "a plan that runs": ["EXPLAIN (ANALYZE, VERBOSE) SELECT content FROM conversations WHERE content LIKE '%kitchen%'"],
    "how common a word is": [f"SELECT hermes_term_fractions('conversations', ARRAY['{CANARY}', '~=kitchen'])"],
    "look up terms": [
        f"SELECT * FROM hermes_look_up_terms(NULL::conversations, 'kitchen', {every}, NULL, NULL, NULL,"
        f" ARRAY['{CANARY}'::tsquery], '{{1}}', 99, 99)"
        for every in ("true",)
    ],
    "look up terms of a theme": [
        "SELECT * FROM hermes_look_up_terms(NULL::conversations, 'kitchen', false, NULL, NULL, NULL,"
        f" ARRAY['{CANARY}'::tsquery], '{{1}}', 99, 99)"
    ],
    "look up common terms": [
        "SELECT * FROM hermes_look_up_common(NULL::memory_entries, 'kitchen', false, NULL, NULL, NULL,"
        f" ARRAY['{CANARY}'::tsquery], 99)"
    ],
    **{
        f"search in {source}, {theme}, {every}": [
            SEARCH.format(source=source, theme=theme, everywhere=every, word=CANARY, vector=NEAR, limit=limit)
        ]
        for source in ("conversations", "memory_entries", "turn_vectors_1")
        for theme, every, limit in (("kitchen", "false", 400), ("dm-1", "true", 400), ("launch", "true", 2147483647))
    },
    "nearest vectors": [
        f"SELECT * FROM hermes_nearest_exact(NULL::turn_vectors_1, 'kitchen', true, NULL, NULL, NULL, {NEAR})"
    ],
    "codes of vectors": [
        "SELECT agent_identity, code FROM turn_vectors_1 ORDER BY code <~> repeat('0', 256)::bit(256)"
    ],
    "claim a theme of others": [
        "SELECT hermes_claim_themes(ARRAY['kitchen', 'dm-1'])",
        "SELECT content FROM conversations",
    ],
    "grant oneself": ["INSERT INTO login_themes (login, theme) VALUES (session_user, 'kitchen')"],
    "grant oneself more": ["UPDATE login_grants SET may_write = true, may_create = true"],
    "act as the fleet": [f"SET ROLE {RUNTIME_ROLE}", "SELECT content FROM conversations"],
    "act as the owner": ["SET ROLE hermes_owner", "SELECT content FROM conversations"],
    "act as somebody else's session": [
        f"SET SESSION AUTHORIZATION {RUNTIME_ROLE}",
        "SELECT content FROM conversations",
    ],
    "switch it off": ["SET row_security = off", "SELECT content FROM conversations"],
    "take it away": ["ALTER TABLE conversations DISABLE ROW LEVEL SECURITY"],
    "take the policy away": ["DROP POLICY hermes_login_reads ON conversations"],
    "a policy of one's own": ["CREATE POLICY mine ON conversations USING (true)"],
    "a view of one's own": [
        "CREATE TEMP VIEW mine AS SELECT * FROM conversations",
        "SELECT content FROM mine",
    ],
    "a table in the way": [
        "CREATE TEMP TABLE login_themes AS SELECT session_user::text AS login, 'kitchen'::text AS theme, false AS is_begun",
        "SELECT content FROM conversations",
    ],
    "functions in the way": [
        "CREATE FUNCTION public.hermes_login_themes(boolean) RETURNS text[] LANGUAGE sql AS 'SELECT ARRAY[''kitchen'']'",
    ],
    "functions in the way, elsewhere": [
        "CREATE FUNCTION pg_temp.hermes_is_private(text) RETURNS boolean LANGUAGE sql AS 'SELECT false'",
        "SET search_path = pg_temp, public",
        "SELECT content FROM conversations",
    ],
    "a cursor": ["DECLARE held CURSOR WITH HOLD FOR SELECT content FROM conversations", "FETCH ALL FROM held"],
    "a prepared statement": ["PREPARE asked AS SELECT content FROM conversations", "EXECUTE asked"],
    "a function of one's own": [
        "CREATE FUNCTION pg_temp.all_of_it() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER AS"
        " 'SELECT content FROM public.conversations'",
        "SELECT pg_temp.all_of_it()",
    ],
    "rows that a conflict shows": [
        "INSERT INTO memory_entries (agent_identity, target, content) SELECT 'kitchen', 'memory', 'x'"
        " ON CONFLICT DO NOTHING RETURNING *"
    ],
    "rows of a merge": [
        "MERGE INTO conversations AS c USING (SELECT 1) AS one ON c.agent_identity = 'kitchen'"
        " WHEN MATCHED THEN UPDATE SET metadata = '{}'"
    ],
    "rows that an update gives back": ["UPDATE conversations SET metadata = '{}' RETURNING content"],
    "moving rows over": [
        "UPDATE conversations SET agent_identity = 'launch' WHERE agent_identity = 'kitchen' RETURNING *"
    ],
    "a journal's mark of others": ["UPDATE journal_writers SET seq = 99 RETURNING writer"],
    "taking over a home": ["UPDATE memory_files SET login = session_user RETURNING entries"],
    "a tombstone for everybody": ["INSERT INTO tombstones VALUES ('x', 1, now())"],
    "files of the server": ["COPY conversations FROM PROGRAM 'true'"],
    "a file of the server": ["SELECT pg_read_file('postgresql.conf')"],
    "other sessions": ["SELECT query FROM pg_stat_activity WHERE query <> ''"],
    "large objects": ["SELECT lo_get(oid) FROM pg_largeobject_metadata"],
    "emptying": ["TRUNCATE conversations"],
    "deleting": ["DELETE FROM conversations RETURNING content"],
    "deleting what was done": ["DELETE FROM audit_log"],
    "letting poison go": ["DELETE FROM quarantined_turns RETURNING agent_identity"],
    "ending a quarantine": ["UPDATE quarantines SET undone_at = now() RETURNING session_id"],
    "which quarantines": ["SELECT session_id FROM quarantines WHERE id = ANY (hermes_login_quarantines())"],
    "trimming what others asked": [
        "SELECT hermes_trim_recall_log(ARRAY['kitchen', 'dm-1', 'launch'], 0)",
        "SELECT query FROM recall_log",
    ],
    "counting words": ["EXPLAIN SELECT FROM conversations WHERE hermes_words(lexemes) @@ 'week'::tsquery"],
    "statistics of words": ["SELECT * FROM pg_stats_ext_exprs", "SELECT * FROM pg_statistic_ext_data"],
    "a trigger of one's own": [
        "CREATE TEMP TABLE mine (agent_identity text, id bigint)",
        "CREATE TRIGGER held AFTER INSERT ON mine REFERENCING NEW TABLE AS added FOR EACH STATEMENT"
        " EXECUTE FUNCTION hermes_hold_late()",
        "INSERT INTO mine VALUES ('kitchen', 1)",
    ],
    "listening": ["LISTEN hermes", "SELECT pg_notify('hermes', 'x'), pg_listening_channels()"],
    "somebody else's large object": ["SELECT lo_export(oid, '/tmp/x') FROM pg_largeobject_metadata"],
    "setting a sequence back": ["SELECT setval('conversations_id_seq', 1)"],
    "temporary tables under our names": [
        "CREATE TEMP TABLE quarantines AS SELECT 99 AS id, 'kitchen'::text AS theme, true AS is_rule, NULL::timestamptz AS undone_at",
        "CREATE TEMP TABLE login_grants AS SELECT session_user::text AS login, true AS may_write, true AS may_create",
        "CREATE TEMP TABLE theme_aliases AS SELECT 'launch'::text AS old, 'kitchen'::text AS new",
        "SELECT hermes_claim_themes('{kitchen}'), hermes_login_quarantines(), aliases FROM hermes_gate()",
        "SELECT content FROM conversations",
    ],
    "names that read as others once backslashes mean something else": [
        "SET standard_conforming_strings = off",
        r"SELECT hermes_claim_themes(ARRAY[E'kit\\chen', E'd\\m-1', E'laun\\ch'])",
        "SELECT set_config('hermes.purpose', '', true), set_config('hermes.themes', '{launch,kitchen,dm-1}', true)",
        "SELECT content FROM conversations",
    ],
    "the server's settings": ["SELECT * FROM pg_hba_file_rules"],
    "its own row of grants": ["DELETE FROM login_themes", "SELECT content FROM conversations"],
    "a role of one's own": ["CREATE ROLE mine_of_laptop IN ROLE hermes_owner"],
    "errors that tell": ["SELECT set_config('hermes.themes', 'kitchen', false)", "SELECT content FROM conversations"],
    "locks": ["SELECT * FROM pg_locks"],
    "whole row by sampling": ["SELECT t::text FROM conversations AS t TABLESAMPLE SYSTEM (100)"],
    "by place": ["SELECT content FROM conversations WHERE ctid = '(0,2)'"],
    "sequences": ["SELECT last_value FROM conversations_id_seq"],
    "the catalog of functions": ["SELECT hermes_analyze()"],
    "gate": ["SELECT aliases FROM hermes_gate()"],
}
FOREIGN = {"launch": ("kitchen", "dm-1"), "kitchen": ("launch", "team-a", "dm-1")}


def tried(dsn: str, statements: list[str]) -> str:
    """Everything that comes back from trying: rows, notices, errors with all their details."""
    said: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
        connection.execute(OPEN.encode())
        connection.execute("BEGIN")
        try:
            for statement in statements:
                if "STDOUT" in statement:
                    with connection.cursor().copy(statement.encode()) as copy:
                        said += [bytes(each).decode() for each in copy]
                    continue
                cursor = connection.execute(statement.encode())
                if cursor.description is not None:
                    said += [str(row) for row in cursor.fetchall()]
        except psycopg.Error as error:
            said += [str(error), str(error.diag.message_detail), str(error.diag.context)]
        connection.execute("ROLLBACK")
    return "\n".join(said)


def test_nothing_that_a_minion_can_try_shows_another_theme(fleet: Fleet) -> None:
    shown = 0
    for login, own in ((fleet.laptop, "launch"), (fleet.screen, "kitchen")):
        for name, statements in ATTEMPTS.items():
            said = tried(fleet.dsn(login), statements)
            for theme in FOREIGN[own]:
                assert f"{CANARY} {theme}" not in said, (login, name, said)
                assert f"{CANARY} old {theme}" not in said, (login, name, said)
            shown += f"{CANARY} {own}" in said
            # An attempt that is refused at the door has not been tried.
            assert "permission denied to create temporary" not in said, name
    # The same attempts do show what is one's own, so they look where words are.
    assert shown > 20


def test_the_same_attempts_show_the_fleets_own_role_everything(fleet: Fleet) -> None:
    said = "\n".join(tried(fleet.database.runtime_dsn, statements) for statements in ATTEMPTS.values())
    for theme in ("launch", "kitchen", "dm-1", "team-a"):
        assert f"{CANARY} {theme}" in said


def test_plans_tell_nothing_of_texts_one_may_not_see(fleet: Fleet) -> None:
    """Estimates come from statistics over all rows: they must not change with the text that is asked for."""
    with psycopg.connect(fleet.database.operator_dsn) as connection:
        for number in range(400):
            text = "the same secret" if number % 2 else f"{number} secret"
            said = {"author": {"name": "Mallory"}} if number % 2 else {}
            connection.execute(
                "INSERT INTO conversations (agent_identity, session_id, role, content, metadata)"
                " VALUES ('kitchen', 's', 'user', %s, %s)",
                (text, json.dumps(said)),
            )
            connection.execute(
                "INSERT INTO dead_letters (writer, seq, payload, reason) VALUES ('w', %s, %s, %s)",
                (number, text.encode(), text),
            )
            connection.execute(
                "INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest)"
                " VALUES ('kitchen', 's', %s, %s)",
                (str(number), text.encode()),
            )
            connection.execute("INSERT INTO audit_log (actor, action, subject) VALUES ('x', 'x', %s)", (text,))
    with psycopg.connect(fleet.database.owner_dsn, autocommit=True) as owner:
        owner.execute("ANALYZE")
    secret, other = "the same secret", "nothing of that kind"
    pairs = [
        *((f"conversations WHERE content {how} '{{}}'", secret, other) for how in ("=", "<", "LIKE", "~", "^@")),
        ("conversations WHERE lexemes @@ '{}'::tsquery", "secret", "nothing"),
        ("conversations WHERE metadata = '{}'", '{"author": {"name": "Mallory"}}', '{"author": {"name": "Ann"}}'),
        ("conversations WHERE metadata @> '{}'", '{"author": {"name": "Mallory"}}', '{"author": {"name": "Ann"}}'),
        ("conversations WHERE digest < '{}'", "\\x00", "\\xff"),
        ("memory_entries WHERE hermes_digest(content) < '{}'", "\\x00", "\\xff"),
        ("delegations WHERE task_digest = '{}'", secret, other),
        ("delegations WHERE task_digest < '{}'", "5", "zzz"),
        ("dead_letters WHERE payload = '{}'", secret, other),
        ("dead_letters WHERE payload < '{}'", "5", "zzz"),
        ("dead_letters WHERE reason < '{}'", "5", "zzz"),
        ("audit_log WHERE subject < '{}'", "5", "zzz"),
        ("turn_vectors_1 WHERE content_hash = {}", "1", "2"),
        ("turn_vectors_1 WHERE embedding = '{}'", VECTOR, VECTOR.replace("0.125", "0.5")),
    ]
    with psycopg.connect(fleet.dsn(fleet.laptop), autocommit=True) as connection:
        connection.execute("SELECT set_config('hermes.themes', '{launch}', false)")
        for place, *values in pairs:
            plans = {
                re.sub(
                    r" width=.*",
                    "",
                    str(connection.execute(f"EXPLAIN SELECT FROM {place.format(value)}".encode()).fetchone()),
                )
                for value in values
            }
            assert len(plans) == 1, (place, plans)
    # The search knows how common words are all the same.
    with psycopg.connect(fleet.database.operator_dsn, autocommit=True) as runtime:
        runtime.execute("SELECT hermes_refresh_statistics()")
        found = runtime.execute("SELECT hermes_term_fractions('conversations', ARRAY['secret', 'nothing'])").fetchone()
        assert found is not None
        assert found[0][0] > 0.9
        assert found[0][1] == 0


LOWEST = {"text": "''", "bytea": "'\\x'", "bigint": "-9223372036854775808", "timestamp with time zone": "'-infinity'"}


def test_no_comparison_looks_at_a_row_before_it_is_known_whose_it_is(fleet: Fleet) -> None:
    """Postgres may compare first, where that is cheap and leakproof: whether the policy is asked at all tells the rest.

    So a login could spell every text out, by halves. What it says of its themes here makes the policy fail when asked.
    """
    with psycopg.connect(fleet.database.owner_dsn) as owner:
        columns = owner.execute(
            "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_policy AS p"
            " JOIN pg_class AS c ON c.oid = p.polrelid"
            " JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
            " WHERE p.polname = 'hermes_login_reads' AND format_type(a.atttypid, NULL) = ANY (%s)"
            " AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'agent_identity')",
            (list(LOWEST),),
        ).fetchall()
        filled = {
            table
            for table in {row[0] for row in columns}
            if owner.execute(f"SELECT FROM {table} LIMIT 1".encode()).fetchall()
        }
    tried_on = [(table, column, kind) for table, column, kind in columns if table in filled]
    assert {
        ("conversations", "content", "text"), ("memory_entries", "content", "text"), ("recall_log", "query", "text"),
        ("memory_operations", "content", "text"), ("turn_vectors_1", "content_hash", "bigint"),
    } <= set(tried_on)  # fmt: skip
    with psycopg.connect(fleet.dsn(fleet.laptop), autocommit=True) as connection:
        connection.execute("SELECT set_config('hermes.purpose', '', false), set_config('hermes.themes', '{', false)")
        for scan in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(f"SET enable_{scan} = off".encode())
        for table, column, kind in tried_on:
            # True of no row; the cheaper of two ways to say it is not even counted as one comparison.
            for none in (f"{column} < {LOWEST[kind]}", f"{column} < ANY (ARRAY[{LOWEST[kind]}]::{kind}[])"):
                with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                    connection.execute(f"SELECT FROM {table} WHERE {none}".encode())


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [("dead_letters", "payload", "bytea"), ("dead_letters", "reason", "text"), ("audit_log", "subject", "text"),
     ("memory_files", "home_id", "text"), ("journal_writers", "writer", "text"), ("agent_processes", "home", "text"),
     ("login_themes", "theme", "text")],
)  # fmt: skip
def test_whose_a_row_is_comes_before_what_is_in_it(fleet: Fleet, table: str, column: str, kind: str) -> None:
    with psycopg.connect(fleet.dsn(fleet.laptop), autocommit=True) as connection:
        asked = f"EXPLAIN SELECT FROM {table} WHERE {column} < ANY (ARRAY['m']::{kind}[])"
        plan = "\n".join(str(row[0]) for row in connection.execute(asked.encode()))
    condition = re.search(r"Filter: (.*)", plan)
    assert condition is not None
    assert condition[1].index("[login] IS NOT NULL") < condition[1].index("< ANY"), plan


def test_a_theme_is_nobodys_only_if_nothing_was_ever_asked_or_removed_there(fleet: Fleet) -> None:
    traces = {
        "removed": "INSERT INTO memory_operations (agent_identity, target, order_us, writer, seq, part, action, content, at)"
        " VALUES ('removed', 'memory', 1, 'w', 9, 0, 'add', 'x', now())",
        "asked": "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, query, milliseconds)"
        " VALUES ('asked', now(), 'tool', 'turn', 'current', 'x', 1)",
        "delegated": "INSERT INTO delegations (agent_identity, session_id, child_session_id, task_digest)"
        " VALUES ('delegated', 's', 'c', 'x')",
        "held": "INSERT INTO quarantines (actor, session_id, theme) VALUES ('op', 's', 'held')",
        "merged": "INSERT INTO theme_aliases (old, new) VALUES ('merged', 'kitchen')",
    }
    with psycopg.connect(fleet.database.operator_dsn) as connection:
        for statement in traces.values():
            connection.execute(statement.encode())
    grant(fleet, fleet.laptop, "launch", "merged", may_create=True)
    with psycopg.connect(fleet.dsn(fleet.laptop)) as connection:
        # A name that was granted and means another theme by now is not that theme.
        refused = connection.execute("SELECT hermes_claim_themes(%s)", ([*traces, "new", "launch"],)).fetchone()
        assert refused == (sorted(traces),)


def test_a_login_writes_in_its_themes_and_begins_what_is_nobodys(fleet: Fleet) -> None:
    say = "INSERT INTO conversations (agent_identity, session_id, role, content) VALUES (%s, 's', 'user', 'x')"
    pool = Pool(lambda _: fleet.dsn(fleet.laptop), maximum=1, connect_seconds=5)
    try:
        for theme in ("launch", "team-b", "never-used"):
            with pool.transaction(Deadline.after(10), reach=WRITER) as connection:
                gate.enter(connection).require(connection, [theme])
                connection.execute(say, (theme,))
                assert connection.execute(
                    "SELECT count(*) FROM conversations WHERE agent_identity = %s", (theme,)
                ).fetchone()
        for theme in ("kitchen", "dm-1", "star-*"):
            with pytest.raises(DatabaseRejected), pool.transaction(Deadline.after(10), reach=WRITER) as connection:
                gate.enter(connection).require(connection, [theme])
            with pytest.raises(DatabaseDenied), pool.transaction(Deadline.after(10), reach=WRITER) as connection:
                connection.execute(say, (theme,))
    finally:
        pool.close()
    (laptop,) = [each for each in logins.listed(fleet.database.owner_dsn) if each.login == fleet.laptop]
    assert (laptop.themes, laptop.begun) == (("launch", "team-*"), ("never-used",))
    # What one has begun stays when the names are given anew; the other login never gets it.
    done = grant(fleet, fleet.laptop, "launch", may_create=True)
    assert done.login is not None
    assert (done.login.themes, done.login.begun) == (("launch",), ("never-used",))
    grant(fleet, fleet.screen, "kitchen", may_create=True)
    with psycopg.connect(fleet.dsn(fleet.screen)) as connection:
        assert connection.execute("SELECT hermes_claim_themes('{never-used,new}')").fetchone() == (["never-used"],)


def test_a_login_that_may_only_read_reads_and_says_why_it_does_not_write(fleet: Fleet) -> None:
    with psycopg.connect(fleet.dsn(fleet.screen)) as connection:
        state = schema.verify(connection)
        assert (state.login, state.may_write) == (fleet.screen, False)
        connection.execute("SELECT set_config('hermes.purpose', 'writer', true)")
        with pytest.raises(DatabaseDenied, match=r"may only read.*grant"):
            gate.enter(connection).require(connection, ["kitchen"])
        # Reading leaves its traces.
        connection.execute(
            "INSERT INTO recall_log (agent_identity, at, caller, kind, scope, milliseconds)"
            " VALUES ('kitchen', now(), 'tool', 'turn', 'current', 1)"
        )


def test_a_journal_of_another_login_is_not_gone_on_with_before_it_is_given(fleet: Fleet) -> None:
    owner = fleet.database.owner_dsn
    with psycopg.connect(fleet.database.operator_dsn) as connection:
        assert watermarks.lock(connection, ["j1"], "home-1") == {"j1": 0}
    pool = Pool(lambda _: fleet.dsn(fleet.laptop), maximum=1, connect_seconds=5)
    try:
        with (
            pytest.raises(DatabaseDenied, match="--home home-1"),
            pool.transaction(Deadline.after(10), reach=WRITER) as one,
        ):
            watermarks.lock(one, ["j1"], "home-1")
        wanted = Wanted(fleet.laptop, None, may_create=True, homes=("home-1",))
        assert logins.grant(owner, wanted, password=None, actor="test", home_id="").rows_of_homes == 1
        with pool.transaction(Deadline.after(10), reach=WRITER) as one:
            assert watermarks.lock(one, ["j1"], "home-1") == {"j1": 0}
    finally:
        pool.close()


def test_a_revoked_login_sees_nothing_and_what_it_wrote_stays(fleet: Fleet) -> None:
    with psycopg.connect(fleet.dsn(fleet.laptop), autocommit=True) as open_session:
        open_session.execute(OPEN.encode())
        assert open_session.execute("SELECT count(*) FROM conversations").fetchone() == (4,)
        logins.revoke(fleet.database.owner_dsn, fleet.laptop, actor="test", home_id="")
        with pytest.raises(psycopg.Error):
            open_session.execute("SELECT count(*) FROM conversations")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(fleet.dsn(fleet.laptop))
    with psycopg.connect(fleet.database.operator_dsn) as connection:
        assert connection.execute("SELECT count(*) FROM conversations").fetchone() == (8,)
        done = connection.execute("SELECT action, subject FROM audit_log WHERE subject LIKE 'login %'").fetchall()
    assert ("revoke-login", f"login {fleet.laptop}") in done
    with pytest.raises(ConfigError, match="no themes were granted"):
        logins.revoke(fleet.database.owner_dsn, fleet.laptop, actor="test", home_id="")


def test_new_tables_are_within_a_logins_reach_and_it_never_becomes_the_fleets_role(fleet: Fleet) -> None:
    owner = fleet.database.owner_dsn
    migrate.apply(owner, runtime_role=RUNTIME_ROLE, model=ModelSpec("another", 32))
    with psycopg.connect(fleet.dsn(fleet.laptop)) as connection:
        connection.execute(OPEN.encode())
        assert connection.execute("SELECT count(*) FROM turn_vectors_2").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM conversations_embedded").fetchone() == (4,)
    with pytest.raises(SchemaError, match="granted single themes"):
        migrate.apply(owner, runtime_role=fleet.laptop, model=ModelSpec(MODEL, DIM))


@pytest.mark.parametrize("name", ["", "pg_mine", "x" * 64, "a\nb", "public"])
def test_a_name_that_is_none_is_refused(database: Database, name: str) -> None:
    with pytest.raises(ConfigError):
        logins.grant(database.owner_dsn, Wanted(name, ("a",)), password=None, actor="test", home_id="")


def test_a_role_that_can_do_more_is_refused(fleet: Fleet) -> None:
    owner = fleet.database.owner_dsn
    for role in (RUNTIME_ROLE, "hermes_owner"):
        with pytest.raises(ConfigError, match="would see every theme"):
            logins.grant(owner, Wanted(role, ("a",)), password=None, actor="test", home_id="")
    name = f"member_{fleet.database.name}"
    with psycopg.connect(owner, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} IN ROLE {RUNTIME_ROLE}".encode())
        try:
            with pytest.raises(ConfigError, match="member"):
                logins.grant(owner, Wanted(name, ("a",)), password=None, actor="test", home_id="")
            admin.execute(f"REVOKE {RUNTIME_ROLE} FROM {name}".encode())
            admin.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
            with pytest.raises(ConfigError, match="REVOKE CREATE ON SCHEMA public"):
                logins.grant(owner, Wanted(name, ("a",)), password=None, actor="test", home_id="")
        finally:
            admin.execute(f"DROP ROLE {name}".encode())


def test_purposes_give_a_login_nothing_beyond_its_themes(fleet: Fleet) -> None:
    pool = Pool(lambda _: fleet.dsn(fleet.laptop), maximum=1, connect_seconds=5)
    try:
        for about in (WRITER, OPERATOR, OVERVIEW):
            with pool.transaction(Deadline.after(10), reach=about) as connection:
                rows = connection.execute("SELECT DISTINCT agent_identity FROM conversations").fetchall()
                assert {row[0] for row in rows} == {"launch", "team-a"}
    finally:
        pool.close()
