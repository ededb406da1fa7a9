"""The password of a login: asked for without echo when the server wants one that the connection string does not hold.

libpq has looked for it before, in PGPASSWORD, in ~/.pgpass and in the service file.
"""

from __future__ import annotations

from hermes_memory_pgvector.errors import DatabaseError
from hermes_memory_pgvector.postgres.connect_failure import NO_PASSWORD, WRONG_PASSWORD
from hermes_memory_pgvector.terminal import ask, sink
from hermes_memory_pgvector.terminal.render import one_line

CONNECT_SECONDS = 10.0
MOST_TRIES = 3


def complete(dsn: str) -> str:
    """The connection string with a password that works; whoever sits at the terminal is asked for it.

    DatabaseError with the reason when it leads nowhere.
    """
    from hermes_memory_pgvector.postgres.conninfo import brief, connect_problem, user_of, with_login

    problem = connect_problem(dsn, CONNECT_SECONDS)
    tries = 0
    while problem is not None:
        if problem.kind not in (NO_PASSWORD, WRONG_PASSWORD) or tries == MOST_TRIES or not ask.can_ask():
            raise _at(brief(dsn), problem)
        if problem.kind == WRONG_PASSWORD:
            sink.write("   the server refuses this password")
        which = "Another password" if tries else "Password"
        typed = ask.ask_secret(f"   {which} for {one_line(brief(dsn))}:")
        if not typed:
            raise _at(brief(dsn), problem)
        dsn = with_login(dsn, user_of(dsn), typed)
        problem = connect_problem(dsn, CONNECT_SECONDS)
        tries += 1
    return dsn


def _at(place: str, problem: DatabaseError) -> DatabaseError:
    return type(problem)(f"{place}: {problem}", sqlstate=problem.sqlstate, kind=problem.kind)
