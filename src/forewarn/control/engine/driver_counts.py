"""What the metrics tell of driver calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from forewarn.durations import Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCallCounts:
    """The calls made in lanes since the start, and those that are being made."""

    answered: Mapping[tuple[str, ...], int] = field(default_factory=dict)  # by driver, verb and answer
    durations: Mapping[tuple[str, ...], Distribution] = field(default_factory=dict)  # by driver and verb
    running: Mapping[str, int] = field(default_factory=dict)  # by driver
    hung: Mapping[str, int] = field(default_factory=dict)  # by driver
    crashes: Mapping[str, int] = field(default_factory=dict)  # of drivers' own processes, by driver
