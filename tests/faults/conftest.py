"""The fixtures of the fault tests: see fixtures/faulty.py."""

from fixtures.faulty import database, far_home, home, proxy, server, template
from fixtures.refusing import disk, host

__all__ = ["database", "disk", "far_home", "home", "host", "proxy", "server", "template"]
