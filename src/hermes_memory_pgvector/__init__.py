"""Postgres + pgvector memory provider for hermes-agent."""

__version__ = "0.1.0"
