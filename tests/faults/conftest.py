"""The fixtures of the fault tests: see testing/faulty.py."""

from testing.faulty import database, far_home, home, proxy, server, template
from testing.refusing import disk, host

__all__ = ["database", "disk", "far_home", "home", "host", "proxy", "server", "template"]
