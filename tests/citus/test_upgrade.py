"""A database that was distributed under an older schema gets to the newest one, with its rows and its answers."""

from __future__ import annotations

import psycopg
from citus.rows import QUESTIONS, THEMES, ask, fill, opened, soon

from hermes_memory_pgvector.admin import migrate
from hermes_memory_pgvector.admin.model_tables import ModelSpec
from hermes_memory_pgvector.server.server import RUNTIME_ROLE, ConnectionInfo
from hermes_memory_pgvector.store import cluster
from hermes_memory_pgvector.store.reach import OVERVIEW
from testing.postgres import DIM, MODEL, Database, new_database

OLDEST = 19
"""The schema that was the newest when a database could first be distributed."""
TAKEN_BACK = """
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
ALTER TABLE dead_letters DROP COLUMN waits_for;
DROP INDEX conversations_lineage;
DROP INDEX delegations_child;
DROP TRIGGER note_change ON audit_log;
DROP TABLE operator_changes, agents, past_processes, agent_processes;
ALTER TABLE memory_entries DROP CONSTRAINT memory_entries_origin_check;
ALTER TABLE memory_entries ADD CONSTRAINT memory_entries_origin_check
    CHECK (origin IN ('memory_tool', 'background_review', 'file', 'operator', 'import'));
ALTER TABLE dead_letters ALTER COLUMN payload SET STATISTICS -1, ALTER COLUMN reason SET STATISTICS -1;
DELETE FROM hermes_pgvector_migrations WHERE version > %(oldest)s;
"""
"""What the migrations after that have brought, as far as it can be taken back."""
DRIFT = """
SELECT DISTINCT result FROM run_command_on_shards('memory_entries', $said$
    SELECT pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid = '%s'::regclass AND starts_with(conname, 'memory_entries_origin_check')$said$)
"""


def test_migrate_brings_it_to_the_newest(postgres_server: ConnectionInfo, migrated_template: Database) -> None:
    with new_database(postgres_server, template=migrated_template.name) as database:
        with opened(database) as pool:
            fill(pool)
            before = [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES]
        with psycopg.connect(database.owner_dsn) as owner:
            for part in TAKEN_BACK.split(";\n"):
                if part.strip():
                    owner.execute(part.encode(), {"oldest": OLDEST} if "%(" in part else None)
        done = migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        wanted = [each.version for each in migrate.migrations() if each.version > OLDEST]
        assert [int(each[:4]) for each in done.applied] == wanted
        assert done.shards == 8
        again = migrate.apply(database.owner_dsn, runtime_role=RUNTIME_ROLE, model=ModelSpec(MODEL, DIM))
        assert again.applied == []
        with opened(database) as pool:
            assert [ask(pool, text, theme=theme) for text in QUESTIONS for theme in THEMES] == before
            with pool.transaction(soon(), reach=OVERVIEW) as connection:
                assert cluster.strangers(connection) == []
                assert cluster.scattered(connection) == []
        with psycopg.connect(database.owner_dsn) as owner:
            constraints = owner.execute(DRIFT).fetchall()
            assert len(constraints) == 1
            assert "mcp" in str(constraints[0][0])
            changed = owner.execute("SELECT number FROM operator_changes").fetchone()
            owner.execute("INSERT INTO audit_log (actor, home_id, action) VALUES ('test', 'h', 'mute')")
            owner.commit()
            assert changed is not None
            assert owner.execute("SELECT number FROM operator_changes").fetchone() == (changed[0] + 1,)
