"""How far back the history of memories is whole: `history_days` takes the rest away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def kept_since(history_days: int) -> datetime | None:
    """Since when the history is kept; None when it is kept for good."""
    return datetime.now(UTC) - timedelta(days=history_days) if history_days else None


def gaps_at(at: datetime, history_days: int) -> str | None:
    """A sentence about what an answer from the past lacks; None when the history of that time is whole."""
    since = kept_since(history_days)
    if since is None or at >= since:
        return None
    return (
        f"the history is kept for {history_days} days (history_days): of the time before {since:%Y-%m-%d}, only "
        "memories that still exist are known"
    )
