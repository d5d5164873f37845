"""Faults of the guest endpoint, injected by a test."""

import itertools
from datetime import timedelta
from typing import Literal, TypeAlias

from forewarn.core.rehearsal_rules import SHORT_NOTICE, SLOW, Fault, FaultKind
from forewarn.testing.fleet_service import TEST, FleetService

__tracebackhide__ = True  # pytest shows the line of the test instead

FaultName: TypeAlias = Literal[
    "slow",
    "hang",
    "429",
    "500",
    "503",
    "empty",
    "text",
    "vanished",
    "born-started",
    "short-notice",
    "incarnation-restart",
]

_numbers = itertools.count(1)


def fault_of(
    name: str,
    machines: tuple[str, ...],
    *,
    calls: int | None,
    delay: timedelta | None,
    notice: timedelta | None,
) -> Fault:
    """Return a fault; ValueError if an argument is wrong."""
    if name not in set(FaultKind):
        raise ValueError(f"fault: expected one of {', '.join(FaultKind)}, got {name!r}")
    kind = FaultKind(name)
    if calls is not None and calls < 1:
        raise ValueError(f"calls: expected 1 or more, got {calls}")
    if delay is not None and kind is not FaultKind.SLOW:
        raise ValueError(f"delay: only for a fault {FaultKind.SLOW!s}, not {kind!s}")
    if notice is not None and kind is not FaultKind.SHORT_NOTICE:
        raise ValueError(f"notice: only for a fault {FaultKind.SHORT_NOTICE!s}, not {kind!s}")
    return Fault(
        kind=kind,
        machines=machines,
        calls=calls,
        delay=SLOW if delay is None else delay,
        notice=SHORT_NOTICE if notice is None else notice,
        number=next(_numbers),
    )


class PutFault:
    """A fault in force until `lift`, the end of its `with` block, or the end of the test."""

    def __init__(self, service: FleetService, fault: Fault) -> None:
        self._service = service
        self._fault = fault
        service.put(fault)
        service.note(TEST, f"injects {fault}")

    def lift(self) -> None:
        """End the fault, if it is still in force."""
        self._service.lift(self._fault)

    def __enter__(self) -> "PutFault":
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
