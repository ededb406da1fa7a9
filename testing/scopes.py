"""The host's own scopes: which home it works for, and the variables that it keeps for that home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import hermes_constants
from agent import secret_scope

DSN = "HERMES_PGVECTOR_DSN"


@contextlib.contextmanager
def working_for(home: Path, scope: Mapping[str, str] | None) -> Iterator[None]:
    """As in a job or a request: threads of ours see nothing of it."""
    where, what = hermes_constants.set_hermes_home_override(str(home)), secret_scope.set_secret_scope(scope)
    try:
        yield
    finally:
        secret_scope.reset_secret_scope(what)
        hermes_constants.reset_hermes_home_override(where)


@contextlib.contextmanager
def serving_several_homes(is_active: bool = True) -> Iterator[None]:
    """A host that keeps the variables of several homes apart, and refuses the environment to all of them."""
    secret_scope.set_multiplex_active(is_active)
    try:
        yield
    finally:
        secret_scope.set_multiplex_active(False)
