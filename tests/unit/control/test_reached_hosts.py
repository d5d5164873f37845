"""The reachability of hosts, in memory."""

import threading
from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta

from forewarn.control.host_reachability import UNKNOWN, HostReachability, Reachability, ReachState
from forewarn.core.basic_types import HostName

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(seconds=10)
ONE, TWO = HostName("host-1"), HostName("host-2")


def test_a_state_has_its_start_and_the_time_of_the_last_contact() -> None:
    hosts = HostReachability()
    assert hosts.of(ONE) is UNKNOWN
    assert hosts.note(ONE, None, at=NOON)
    assert not hosts.note(ONE, None, at=LATER)
    assert hosts.of(ONE) == Reachability(state=ReachState.REACHABLE, since=NOON, last_reached=LATER)
    assert hosts.note(ONE, "no route", at=LATER)
    assert not hosts.note(ONE, "no answer", at=LATER + timedelta(seconds=2))
    assert hosts.of(ONE) == Reachability(
        state=ReachState.UNREACHABLE, since=LATER, last_reached=LATER, why="no answer"
    )
    assert hosts.all() == {ONE: hosts.of(ONE)}


class OtherHosts(Set[HostName]):
    """Lets a driver's answer arrive during an iteration."""

    def __init__(self, hosts: set[HostName], came: threading.Thread) -> None:
        self._hosts = hosts
        self._came = came

    def _come(self) -> None:
        if self._came.ident is None:
            self._came.start()
            self._came.join(0.2)  # the lock delays it until the end

    def __contains__(self, host: object) -> bool:
        self._come()
        return host in self._hosts

    def __iter__(self) -> Iterator[HostName]:
        self._come()
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)


def test_an_answer_during_the_removal_of_other_hosts_is_not_lost() -> None:
    hosts = HostReachability()
    for number in range(10):
        hosts.note(HostName(f"gone-{number}"), None, at=NOON)
    hosts.note(ONE, None, at=NOON)
    lane = threading.Thread(target=hosts.note, args=(TWO, "no route"), kwargs={"at": NOON})
    hosts.keep(OtherHosts({ONE, TWO}, lane))
    lane.join()
    assert hosts.all().keys() == {ONE, TWO}
    assert hosts.of(TWO).why == "no route"
