"""What the tests and the benches share: servers that misbehave on order, homes, databases, and waiting.

Tests and benches import from here, never from each other. The package is no part of the wheel.
"""
