"""Which tests of tests/database are not run on a Citus cluster, each with the reason; all others are."""

from __future__ import annotations

ONE_SERVER = "about the embedded server, or servers that the test starts itself"
LOGINS = "logins of single minions are refused on a cluster (tests/citus/test_commands.py)"
INDEXES = "approximate indexes are refused on a cluster, where shards are searched exactly"
INSIDE = "calls functions or explains plans of one server; a cluster has its own (tests/citus)"
MIGRATING = "about making and adopting tables on one server (tests/citus/test_upgrade.py)"
MODELS = "a change of the model beside the one in use is refused on a cluster"
MOVING = "moving to and from a cluster is refused"

LEFT_OUT = {
    "test_adoption.py": MIGRATING,
    "test_backup.py": ONE_SERVER,
    "test_bench_recall_guard.py": ONE_SERVER,
    "test_borders.py": MIGRATING,
    "test_cli_grant.py": LOGINS,
    "test_cli_index.py": INDEXES,
    "test_cli_migrate.py": MIGRATING,
    "test_cli_setup.py": ONE_SERVER,
    "test_cli_wizard.py": ONE_SERVER,
    "test_connect_failures.py": ONE_SERVER,
    "test_definer.py": INSIDE,
    "test_dump.py": ONE_SERVER,
    "test_functions.py": INSIDE,
    "test_functions_replica.py": INSIDE,
    "test_functions_search.py": INSIDE,
    "test_functions_walls.py": LOGINS,
    "test_login_agent.py": LOGINS,
    "test_logins.py": LOGINS,
    "test_migrate.py": MIGRATING,
    "test_nearest.py": INSIDE,
    "test_plans.py": INSIDE,
    "test_pooler.py": ONE_SERVER,
    "test_promote.py": MOVING,
    "test_reembed.py": MODELS,
    "test_replica.py": ONE_SERVER,
    "test_server.py": ONE_SERVER,
    "test_theme_index.py": INDEXES,
    "test_vector_indexes.py": INDEXES,
    "test_walls.py": LOGINS,
}
"""By file, or by file and test."""


def is_left_out(test: str) -> bool:
    """Whether a test of tests/database is not run on a cluster."""
    file, _, name = test.partition("::")
    place = file.rpartition("/")[2]
    return place in LEFT_OUT or f"{place}::{name.partition('[')[0]}" in LEFT_OUT
