"""A home's settings and its identity.

Comes in: config.yaml, .env, the environment. Goes out: `Settings`, with every problem named.
"""
