"""Stretches of service time in which guests could not be heard."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The service was down or frozen, or its clock jumped: nothing follows from not hearing guests."""

    since: datetime
    until: datetime
