"""The base class where hermes-agent is not installed: the tour, this package's own tests, other programs."""

from __future__ import annotations


class MemoryProvider:
    """Stands in for the host's abstract class; every hook is defined by the provider itself."""
