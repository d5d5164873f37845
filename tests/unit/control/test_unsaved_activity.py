"""Readers see polls and notices at every moment between the boards and the store."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from forewarn.control.interfaces import LastPolls, UntakenNotices
from forewarn.control.unsaved_activity import UnsavedNotices, UnsavedPolls
from forewarn.core.basic_types import EventId, GroupName, MachineId
from forewarn.core.model.slice import Sent
from tests.helpers.service.racing import PATIENCE

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
EVENT, MACHINE = EventId("E"), MachineId("web-0")


class Boards:
    """Boards with a poll and a notice. A test may stop them after they gave both away."""

    def __init__(self) -> None:
        self.polled: dict[MachineId, datetime] = {MACHINE: NOON}
        self.sent: Sent = {EVENT: {MACHINE: NOON}}
        self.gave, self.go_on = threading.Event(), threading.Event()

    def _give(self) -> None:
        self.gave.set()
        assert self.go_on.wait(PATIENCE)

    def pending(self) -> bool:
        return bool(self.polled)

    def take(self) -> tuple[Mapping[GroupName, datetime], Mapping[MachineId, datetime]]:
        polled, self.polled = self.polled, {}
        self._give()
        return {}, polled

    def fresh(self) -> LastPolls:
        polled = dict(self.polled)
        return lambda machines: {each: polled[each] for each in machines if each in polled}

    def has_notices(self) -> bool:
        return bool(self.sent)

    def take_notices(self) -> Sent:
        sent, self.sent = self.sent, {}
        self._give()
        return sent

    def untaken_notices(self) -> UntakenNotices:
        sent = dict(self.sent)
        return lambda event: sent.get(event, {})


class NothingSaved:
    """A store without notices."""

    def notices(self, events: Sequence[EventId]) -> Sent:
        return {}


def polls_read(boards: Boards) -> tuple[Callable[[], object], Callable[[], object]]:
    polls = UnsavedPolls(boards)
    return polls.collect, lambda: polls.fresh()([MACHINE])


def notices_read(boards: Boards) -> tuple[Callable[[], object], Callable[[], object]]:
    notices, store = UnsavedNotices(boards), NothingSaved()

    def read() -> object:
        work: Any = store
        return notices.now().notices(work, [EVENT])[EVENT]

    return notices.pending, read


@pytest.mark.parametrize("way", [polls_read, notices_read])
def test_a_reader_waits_for_values_on_their_way_from_the_boards(
    way: Callable[[Boards], tuple[Callable[[], object], Callable[[], object]]],
) -> None:
    boards, seen = Boards(), list[object]()
    collect, read = way(boards)
    worker = threading.Thread(target=collect)
    worker.start()
    assert boards.gave.wait(PATIENCE)
    reader = threading.Thread(target=lambda: seen.append(read()))
    reader.start()  # it waits for the lock; without it, it would miss the values
    reader.join(0.05)
    assert seen == []
    boards.go_on.set()
    for each in (worker, reader):
        each.join(PATIENCE)
    assert seen == [{MACHINE: NOON}]


def test_a_reader_sees_a_poll_until_the_store_has_it() -> None:
    boards, seen = Boards(), list[object]()
    boards.go_on.set()
    polls = UnsavedPolls(boards)
    polls.collect()

    class Store:
        def save_activity(self, *_: object) -> None:
            reader = threading.Thread(target=lambda: seen.append(polls.fresh()([MACHINE])))
            reader.start()
            reader.join(PATIENCE)

    store: Any = Store()
    polls.save_some(store)
    assert seen == [{MACHINE: NOON}]
    assert polls.fresh()([MACHINE]) == {}
