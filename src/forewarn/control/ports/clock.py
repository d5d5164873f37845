"""Service time, as control reads it."""

from datetime import datetime
from typing import Protocol


class ServiceClock(Protocol):
    """Service time: the only time the rules know."""

    def now(self) -> datetime:
        """Return the present moment, aware and UTC."""
        ...
