"""Faults of the metadata plane, put and lifted by a test."""

import itertools
from datetime import timedelta
from types import TracebackType
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
    """Make a fault; ValueError says what is wrong with it."""
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
    """A fault that guests meet until it is lifted: by hand, at the end of a `with`, or with the test."""

    def __init__(self, service: FleetService, fault: Fault) -> None:
        self._service = service
        self._fault = fault
        service.put(fault)
        service.note(TEST, f"puts {fault}")

    def lift(self) -> None:
        """End it; the second time changes nothing."""
        self._service.lift(self._fault)

    def __enter__(self) -> "PutFault":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lift()
