"""Postgres + pgvector memory provider for hermes-agent."""

__version__ = "2.0.0"
