"""Histories with a reader of the records, which reads after each action and each span of time."""

from collections.abc import Mapping, Sequence
from typing import Any

from forewarn.core.basic_types import Kind
from forewarn.core.model.record import Record
from tests.histories.declaring_histories import DeclaringHistories
from tests.histories.situations import Look, Reached, Situation


class FollowedHistories(DeclaringHistories):
    """A history that calls `follow` with the new records."""

    def __init__(self, seed: int, reached: Reached) -> None:
        super().__init__(seed, reached)
        self._followed = 0  # the last record that the reader got

    def follow(self, records: Sequence[Record]) -> None:
        raise NotImplementedError

    def _follow(self) -> None:
        records = self.service.history(above=self._followed)
        self._followed = max((record.number for record in records), default=self._followed)
        self.follow(records)

    def do(self, what: Any, *args: Any, **more: Any) -> None:
        super().do(what, *args, **more)
        self._follow()

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._follow()

    def check(self) -> None:
        """Check nothing: other histories check the rules."""
        self.look(self.service.everything())
        self._follow()

    def _checked(self) -> None:
        """Use the plain store."""


def _recorded(kind: Kind) -> Situation:
    def is_met(look: Look) -> bool:
        return look.recorded(kind)

    return is_met


FOLLOWED_SITUATIONS: Mapping[str, Situation] = {
    kind: _recorded(kind)
    for kind in (
        *(Kind.GROUP_ADDED, Kind.GROUP_CHANGED, Kind.GROUP_ENABLED, Kind.GROUP_DISABLED, Kind.PROJECT_ADDED),
        *(Kind.HOST_ADDED, Kind.HOST_CHANGED, Kind.MACHINE_CHANGED, Kind.MACHINE_MOVED, Kind.FLEET_APPLIED),
        *(Kind.HOLD_SET, Kind.ROLLOUT_BEGUN, Kind.ROLLOUT_ABORTED, Kind.STEP_FAILED, Kind.ORDER_CANCELLED),
    )
}
