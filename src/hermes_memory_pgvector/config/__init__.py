"""Where a home's settings come from, and who the home is.

Comes in: config.yaml, .env, the environment. Goes out: `Settings`, with every problem named.
"""
