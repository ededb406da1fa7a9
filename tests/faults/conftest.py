"""The fixtures of the fault tests: see fixtures/faulty.py."""

from fixtures.faulty import database, far_home, home, proxy, server, template

__all__ = ["database", "far_home", "home", "proxy", "server", "template"]
