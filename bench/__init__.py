"""Proof: this package beside the published hermes-memory-pgvector 1.0.0, through the same public hooks, in one run."""
