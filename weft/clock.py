"""The one place that asks what time it is in this process.

The database has its own clock (`weft_now()`), and it alone decides about leases, deadlines and order. This one
serves what never leaves the process: what a person reads, and how long something took.
"""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current instant, aware, in UTC."""
    return datetime.now(UTC)
