"""How far back the history of memories is whole: `history_days` takes the rest away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def kept_since(history_days: int) -> datetime | None:
    """Since when the history is kept; None when it is kept for good."""
    return datetime.now(UTC) - timedelta(days=history_days) if history_days else None
