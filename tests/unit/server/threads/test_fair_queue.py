"""Fair queues: callers take turns, items of a caller keep their order, withdrawn items are never taken."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forewarn.server.threads.fair_queue import FairQueue

CALLERS = "abcd"


@dataclass(frozen=True, slots=True)
class Item:
    caller: str
    number: int


def filled(callers: str) -> FairQueue[str, Item]:
    queue = FairQueue[str, Item]()
    for number, caller in enumerate(callers):
        queue.put(caller, Item(caller, number))
    return queue


def drained(queue: FairQueue[str, Item]) -> list[Item]:
    return list(iter(queue.take, None))


@given(st.text(CALLERS))
def test_each_caller_has_a_turn_before_another_has_two(callers: str) -> None:
    left, taken = Counter(callers), Counter[str]()
    for item in drained(filled(callers)):
        taken[item.caller] += 1
        waiting = [caller for caller in left if taken[caller] < left[caller]]
        assert all(taken[item.caller] <= taken[caller] + 1 for caller in waiting)
    assert taken == left


@given(st.text(CALLERS), st.sets(st.sampled_from(CALLERS)))
def test_a_caller_that_may_not_be_served_keeps_its_turn_and_delays_no_other(
    callers: str, blocked: set[str]
) -> None:
    queue, other = filled(callers), filled("".join(each for each in callers if each not in blocked))
    taken = list(iter(lambda: queue.take(lambda item: item.caller not in blocked), None))
    assert [item.caller for item in taken] == [item.caller for item in drained(other)]
    assert not queue.can_take(lambda item: item.caller not in blocked)
    rest = filled("".join(each for each in callers if each in blocked))
    assert [item.caller for item in drained(queue)] == [item.caller for item in drained(rest)]


@given(st.text(CALLERS, min_size=1), st.integers(min_value=1))
def test_items_that_are_put_back_keep_their_position(callers: str, count: int) -> None:
    queue = filled(callers)
    expected = drained(filled(callers))
    taken = [item for _ in range(count % len(callers) + 1) if (item := queue.take()) is not None]
    for item in reversed(taken):
        queue.put_back(item.caller, item)
    assert [queue.take() for _ in taken] == expected[: len(taken)]


class FairQueueHistory(RuleBasedStateMachine):
    """Any order of calls: each item is taken once or withdrawn, and items of a caller keep their order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue[str, Item]()
        self.waiting: dict[str, list[Item]] = {caller: [] for caller in CALLERS}
        self.served_since: dict[
            str, Counter[str]
        ] = {}  # how often other callers were served while a caller waited
        self.numbers = 0

    @rule(caller=st.sampled_from(CALLERS))
    def put(self, caller: str) -> None:
        self.numbers += 1
        item = Item(caller, self.numbers)
        self.queue.put(caller, item)
        self.waiting[caller].append(item)
        self.served_since.setdefault(caller, Counter())

    @rule(blocked=st.sets(st.sampled_from(CALLERS), max_size=2), returns=st.booleans())
    def take(self, blocked: set[str], *, returns: bool) -> None:
        item = self.queue.take(lambda each: each.caller not in blocked)
        served = [caller for caller, items in self.waiting.items() if items and caller not in blocked]
        if item is None:
            assert not served
            return
        assert item.caller in served
        assert item == self.waiting[item.caller][0]
        for each in blocked & self.served_since.keys():
            self.served_since[each].clear()  # it had its turn but could not be served
        if returns:
            self.queue.put_back(item.caller, item)
            assert self.queue.callers()[0] == item.caller
            return
        self.waiting[item.caller].pop(0)
        for caller in self.served_since.keys() - {item.caller}:
            self.served_since[caller][item.caller] += 1
            assert caller in blocked or self.served_since[caller][item.caller] <= 1
        self.served_since.pop(item.caller)
        if self.waiting[item.caller]:
            self.served_since[item.caller] = Counter()

    @rule(caller=st.sampled_from([*CALLERS, None]), remainder=st.integers(0, 2))
    def withdraw(self, caller: str | None, remainder: int) -> None:
        withdrawn = self.queue.withdraw(lambda item: item.number % 3 == remainder, caller=caller)
        expected = set[Item]()
        for each in CALLERS if caller is None else [caller]:
            gone = [item for item in self.waiting[each] if item.number % 3 == remainder]
            self.waiting[each] = [item for item in self.waiting[each] if item not in gone]
            if not self.waiting[each]:
                self.served_since.pop(each, None)
            expected |= set(gone)
        assert set(withdrawn) == expected
        assert len(withdrawn) == len(expected)

    @invariant()
    def knows_what_waits(self) -> None:
        waiting = {caller for caller, items in self.waiting.items() if items}
        assert set(self.queue.callers()) == waiting
        assert bool(self.queue) is bool(waiting)
        assert len(self.queue) == sum(map(len, self.waiting.values()))
        assert all(list(self.queue.of(caller)) == self.waiting[caller] for caller in CALLERS)
        assert all((caller in self.queue) is (caller in waiting) for caller in CALLERS)

    def teardown(self) -> None:
        left = self.queue.clear()
        assert {item.number for item in left} == {
            item.number for items in self.waiting.values() for item in items
        }
        assert not self.queue


TestFairQueueHistory = FairQueueHistory.TestCase
