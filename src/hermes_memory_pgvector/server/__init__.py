"""The embedded Postgres of a home.

Comes in: a home's folder and settings. Goes out: a running server and the logins of its owner and of the agents.
"""
