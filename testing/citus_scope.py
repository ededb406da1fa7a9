"""Which tests of tests/database are not run on a Citus cluster, each with the reason; all others are."""

from __future__ import annotations

ONE_SERVER = "about the embedded server, or servers that the test starts itself"
LOGINS = "logins of single minions are refused on a cluster (tests/citus/test_commands.py)"
INDEXES = "approximate indexes are refused on a cluster, where shards are searched exactly"
INSIDE = "calls functions or explains plans of one server; a cluster has its own (tests/citus)"
MIGRATING = "about making and adopting tables on one server (tests/citus/test_upgrade.py)"
MODELS = "a change of the model beside the one in use is refused on a cluster"
MOVING = "moving to and from a cluster is refused"
AS_OWNER = "looks at all themes as the runtime role; a cluster's workers let only the owner do so in a session"
COUNTS = "counts or ends connections by number; a cluster has connections of its own between its nodes"
OWN_TABLES = "makes the tables of a model itself, without the functions that shards need"
SELF_CHECK = "a cluster compares no searches with brute force: shards are searched by the functions of one server"
VACUUM = "looks at the visibility map of one server's tables"
OWN_SQL = "its own statements are some that Citus does not take"

LEFT_OUT = {
    "test_cli_reading.py::test_doctor_notices_tables_that_wait_for_a_vacuum": VACUUM,
    "test_one_callers_fault.py::test_what_concerns_everybody_opens_the_breaker_and_is_told": INSIDE,
    "test_pool.py::test_a_closed_pool_refuses_and_leaves_nothing_open": COUNTS,
    "test_pool.py::test_a_broken_connection_leaves_no_text_of_the_server_in_the_log": COUNTS,
    "test_pool.py::test_a_server_that_went_away_while_idle_is_noticed_before_use": COUNTS,
    "test_pool.py::test_at_most_the_maximum_is_open_however_many_ask": COUNTS,
    "test_pool.py::test_idle_connections_are_closed": COUNTS,
    "test_recall.py::test_hits_are_answered_also_when_their_neighbours_cannot_be_had": AS_OWNER,
    "test_recall.py::test_the_exact_switch_compares_every_row": OWN_TABLES,
    "test_recall.py::test_the_self_check_widens_a_search_that_misses": SELF_CHECK,
    "test_search.py::test_a_small_theme_is_exact_among_many_large_ones": OWN_TABLES,
    "test_search.py::test_rows_moved_to_another_theme_are_found_there_only": OWN_SQL,
    "test_search.py::test_statistics_may_be_refreshed_by_many_at_once": INSIDE,
    "test_search.py::test_the_nearest_are_those_of_brute_force": OWN_TABLES,
    "test_statements.py::test_no_keys_means_no_rows": INSIDE,
    "test_writer.py::test_a_batch_that_took_too_long_is_halved_until_it_arrives": OWN_SQL,
    "test_writer.py::test_an_idle_writer_lets_its_connection_go": COUNTS,
    "test_fleet.py::test_a_login_sees_its_own_processes_and_themes_alone": LOGINS,
    "test_neighbours.py::test_a_session_is_read_from_its_timeline_whatever_the_planner_knows": INSIDE,
    "test_functions_growth.py": INSIDE,
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
    "test_mcp_login.py": LOGINS,
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
