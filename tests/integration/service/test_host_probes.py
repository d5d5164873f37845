"""Connection tests of hosts: when they run, what their answers mean, and how changes are saved."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from forewarn.control.driver import Done, DriverTask, Running, Unknown
from forewarn.control.engine.driver_calls import (
    Answer,
    CallAnswer,
    DriverCall,
    HostRefused,
    Reached,
    Verb,
)
from forewarn.control.engine.incoming_changes import ReachabilitySaver
from forewarn.control.host_reachability import Reachability, ReachState
from forewarn.core.basic_types import Action, HostName, OrderId, Work
from forewarn.core.errors import Unavailable
from forewarn.core.model.declaration import FleetDefaults, FleetSpec, HostSpec
from forewarn.core.model.host import Host
from forewarn.server.threads.host_probes import ASK_AGAIN, ASKED_A_SECOND, HostProbes
from forewarn.store.snapshots import Snapshot
from tests.helpers.database.transactions import InTransactions
from tests.helpers.service.harness import START, Service
from tests.helpers.service.racing import at_once
from tests.helpers.service.scripted_driver import ScriptedDriver

ONE, TWO = HostName("host-1"), HostName("host-2")
EVERY = 4.0
FLEET = FleetSpec(
    hosts=(
        HostSpec(name=ONE, driver="rack", uri="rack://1"),
        HostSpec(name=TWO, driver="rack"),
        HostSpec(name=HostName("other"), driver="simulated"),
    )
)


class ManualProbes:
    """Manual connection tests: the test advances the clock, answers, and runs the jobs of the worker."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.now = 0.0
        self.refused: HostName | None = None  # calls for it are refused
        self.calls: list[DriverCall] = []
        self.jobs: list[tuple[Callable[[], Mapping[HostName, Reachability]], Future[None]]] = []
        self.reached = service.context.reached
        self.reaching = HostProbes(
            {"rack": EVERY},
            service.context,
            submit=self._submit,
            save=self._post,
            monotonic=lambda: self.now,
        )
        service.store.saved = self.reaching.note
        self.reaching.load()

    def _submit(self, call: DriverCall) -> None:
        if call.task.source is not None and call.task.source.name == self.refused:
            raise RuntimeError("can't start new thread")
        self.calls.append(call)

    def _post(self, changed: Callable[[], Mapping[HostName, Reachability]]) -> "Future[None]":
        self.jobs.append((changed, Future()))
        return self.jobs[-1][1]

    def look(self, seconds: float = 0.0) -> list[str]:
        """Advance the time and look; return the hosts that are tested."""
        self.now += seconds
        if self.reaching.is_stale:
            self.reaching.load()
        self.calls.clear()
        self.reaching.ask()
        return [call.task.source.name for call in self.calls if call.task.source]

    def answer(self, call: DriverCall, answer: Answer, *, hangs: bool = False) -> None:
        self.reaching.take_answer(CallAnswer(call=call, answer=answer, hangs=hangs))

    def answer_all(self, why: str | None = None) -> None:
        for call in list(self.calls):
            self.answer(call, Reached(why))

    def work(self) -> None:
        """Run the jobs of the worker."""
        while self.jobs:
            changed, done = self.jobs.pop(0)
            InTransactions(ReachabilitySaver(self.service.context), self.service.transact).save(changed())
            done.set_result(None)

    def fail(self, error: Exception) -> None:
        """Let a job fail after it has taken the changes."""
        changed, done = self.jobs.pop(0)
        changed()
        done.set_exception(error)

    def state(self, host: HostName) -> ReachState:
        return self.reached.of(host).state

    def away(self) -> list[str]:
        """The unreachable hosts in the store."""
        with self.service.store.read() as snapshot:
            return [host.name for host in snapshot.fleet.unreachable_hosts()]


def opened(folder: Path, fleet: FleetSpec = FLEET) -> Service:
    service = Service(f"sqlite:///{folder}/asking.db")
    service.more_drivers["rack"] = ScriptedDriver()
    service.wire(service.store)
    service.apply(fleet)
    return service


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[ManualProbes]:
    service = opened(tmp_path)
    yield ManualProbes(service)
    service.close()


def step(source: HostName, target: HostName | None = None) -> DriverTask:
    """Return a step of the hosts' driver."""
    return DriverTask(
        order=OrderId("1"),
        attempt=1,
        action=Action.REDEPLOY,
        work=Work.REDEPLOY,
        machine=None,
        source=Host(name=source),
        target=None if target is None else Host(name=target),
        begun_at=START,
        now=START,
        driver="rack",
    )


def test_connections_are_tested_repeatedly_and_sooner_while_a_host_is_unreachable(
    asking: ManualProbes,
) -> None:
    assert asking.look() == [ONE]
    assert asking.look(1.0) == [TWO]  # not all at once
    asking.answer_all("no route")
    assert asking.look(ASK_AGAIN) == [TWO]
    asking.answer_all()
    assert asking.look(EVERY - 1) == []  # host-1 has not answered, and is not tested twice
    assert asking.look(1.0) == [TWO]


def test_the_number_of_tests_per_look_is_limited(asking: ManualProbes) -> None:
    many = tuple(HostSpec(name=HostName(f"many-{number:03}"), driver="rack") for number in range(150))
    asking.service.apply(replace(FLEET, hosts=many))
    assert len(asking.look()) == 1
    assert len(asking.look(60.0)) == ASKED_A_SECOND
    assert len(asking.look()) == 150 - 1 - ASKED_A_SECOND


def test_a_failed_submission_delays_no_other_host_and_is_retried(
    asking: ManualProbes,
) -> None:
    asking.refused = ONE
    with pytest.raises(RuntimeError, match="can't start new thread"):
        asking.look(1.0)
    assert [call.task.source.name for call in asking.calls if call.task.source] == [TWO]
    asking.answer_all()
    asking.refused = None
    assert asking.look(ASK_AGAIN) == [ONE]


def test_a_change_is_saved_once_by_the_worker(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    asking.work()
    assert (asking.state(ONE), asking.away()) == (ReachState.REACHABLE, [])
    asking.look(EVERY)
    asking.answer_all("no route")
    assert len(asking.jobs) == 1
    asking.work()
    assert asking.away() == [ONE, TWO]
    asking.look(ASK_AGAIN)
    asking.answer_all("no answer")
    assert asking.jobs == []
    asking.look(ASK_AGAIN)
    asking.answer_all()
    asking.work()
    assert asking.away() == []


def test_the_worker_saves_the_latest_state(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all("no route")
    asking.look(ASK_AGAIN)
    asking.answer_all()
    asking.work()
    assert asking.away() == []


@pytest.mark.parametrize("error", [Unavailable("the database is silent"), ValueError("broken")])
def test_a_failed_save_is_retried_later(asking: ManualProbes, error: Exception) -> None:
    asking.look(1.0)
    asking.answer_all("no route")
    asking.fail(error)
    assert asking.away() == []
    asking.look(1.0)
    asking.work()
    assert asking.away() == [ONE, TWO]


def test_a_dropped_job_is_posted_again(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all("no route")
    asking.jobs.pop()[1].set_exception(Unavailable("the server is busy"))
    asking.look(1.0)
    asking.work()
    assert asking.away() == [ONE, TWO]


def test_a_call_that_hangs_makes_its_host_unreachable(asking: ManualProbes) -> None:
    asking.look(1.0)
    (call, _) = asking.calls
    asking.answer(call, Unknown("no answer within 5 s"), hangs=True)
    assert asking.state(ONE) is ReachState.UNREACHABLE
    assert asking.look(60.0) == []
    asking.answer(call, Reached(None))
    assert asking.state(ONE) is ReachState.REACHABLE
    assert asking.look(EVERY) == [ONE]


def test_a_lost_answer_counts_the_second_time(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    asking.work()
    died = Unknown("its driver says: the process of driver rack was killed by SIGSEGV")
    asking.look(EVERY)
    asking.answer(asking.calls[0], died)
    assert asking.state(ONE) is ReachState.REACHABLE
    assert asking.jobs == []
    assert asking.look(ASK_AGAIN) == [ONE]
    asking.answer(asking.calls[0], died)
    assert asking.state(ONE) is ReachState.UNREACHABLE
    assert asking.reached.of(ONE).why == "the process of driver rack was killed by SIGSEGV"
    assert asking.look(ASK_AGAIN) == [ONE]
    asking.answer_all()
    assert asking.state(ONE) is ReachState.REACHABLE
    assert asking.look(EVERY) == [ONE]
    asking.answer_all()
    asking.look(EVERY)
    asking.answer(asking.calls[0], died)  # the next crash is a new one
    assert asking.state(ONE) is ReachState.REACHABLE


def test_a_host_that_a_driver_names_as_unreachable_is_so_immediately(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    said = Unknown("its driver says: host-2 cannot be reached: no route", host=TWO)
    asking.answer(DriverCall(verb=Verb.CHECK, task=step(ONE, TWO)), said)
    assert (asking.state(ONE), asking.state(TWO)) == (ReachState.REACHABLE, ReachState.UNREACHABLE)
    assert asking.reached.of(TWO).why == "no route"
    asking.work()
    assert asking.away() == [TWO]
    assert asking.look() == [ONE]  # which the answer does not name
    assert asking.look(ASK_AGAIN) == [TWO]


def test_a_target_that_is_unreachable_before_a_step_is_so_immediately(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    call = DriverCall(verb=Verb.BEGIN, task=step(ONE, TWO))
    asking.answer(call, HostRefused("no route", unreached=True))
    assert asking.state(TWO) is ReachState.UNREACHABLE
    asking.answer(call, HostRefused("it has its disk on host-1"))
    assert asking.state(ONE) is ReachState.REACHABLE


def test_an_answer_that_contradicts_the_known_state_triggers_a_test(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    assert asking.look() == []
    asking.answer(DriverCall(verb=Verb.CHECK, task=step(ONE)), Unknown("it hangs"))
    assert asking.state(ONE) is ReachState.REACHABLE
    assert asking.look() == [ONE]
    asking.answer_all("no route")
    assert asking.look() == []
    asking.answer(DriverCall(verb=Verb.CHECK, task=step(ONE)), Running(None))
    assert asking.look() == [ONE]


def test_answers_of_other_drivers_and_for_removed_hosts_are_ignored(asking: ManualProbes) -> None:
    asking.look(1.0)
    calls = list(asking.calls)
    asking.answer(DriverCall(verb=Verb.CHECK, task=replace(step(ONE), driver="hook")), Unknown("?", host=ONE))
    asking.answer(DriverCall(verb=Verb.CHECK, task=step(HostName("other"))), Done())
    assert asking.state(ONE) is ReachState.UNKNOWN
    asking.service.apply(replace(FLEET, hosts=FLEET.hosts[1:]))
    asking.look()
    for call in calls:
        asking.answer(call, Reached("no route"))
    assert (asking.state(ONE), asking.state(TWO)) == (ReachState.UNKNOWN, ReachState.UNREACHABLE)


def test_a_host_with_a_new_uri_is_tested_there(asking: ManualProbes) -> None:
    asking.look(1.0)
    (old, _) = asking.calls
    asking.answer_all("no route")
    asking.work()
    moved = replace(FLEET.hosts[0], uri="rack://elsewhere")
    asking.service.apply(replace(FLEET, hosts=(moved, *FLEET.hosts[1:])))
    assert asking.look() == [ONE]
    asking.answer(old, Reached(None))  # with its previous connection
    assert asking.state(ONE) is ReachState.UNREACHABLE
    asking.answer_all()
    asking.work()
    assert asking.away() == [TWO]


def test_a_host_whose_new_driver_cannot_test_counts_as_usable(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all("no route")
    asking.work()
    other = replace(FLEET.hosts[0], driver="simulated")
    asking.service.apply(replace(FLEET, hosts=(other, *FLEET.hosts[1:])))
    asking.look()
    asking.work()
    assert asking.away() == [TWO]
    assert asking.state(ONE) is ReachState.UNKNOWN


def test_hosts_are_read_again_only_after_relevant_changes(asking: ManualProbes) -> None:
    asking.look()
    assert not asking.reaching.is_stale
    asking.service.host_order("other", Action.CORDON)
    asking.service.host_order(ONE, Action.CORDON)
    assert not asking.reaching.is_stale
    asking.service.apply(replace(FLEET, defaults=FleetDefaults(driver="rack")))
    assert asking.reaching.is_stale
    asking.look()
    asking.reaching.note(None)
    assert asking.reaching.is_stale


def test_a_fleet_without_such_drivers_needs_no_jobs(tmp_path: Path) -> None:
    service = opened(tmp_path, replace(FLEET, hosts=FLEET.hosts[2:]))
    asking = ManualProbes(service)
    assert asking.look() == []
    assert not asking.reaching.wanted
    service.host_order("other", Action.CORDON)
    assert not asking.reaching.is_stale
    service.close()


def test_after_a_restart_of_the_driver_process_all_hosts_are_tested(asking: ManualProbes) -> None:
    asking.look(1.0)
    asking.answer_all()
    assert asking.look() == []
    asking.reaching.ask_soon()
    assert asking.look() == [ONE, TWO]


def test_a_host_saved_during_a_read_is_tested_after_the_next_read(
    asking: ManualProbes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = asking.service.store.read
    three = HostName("host-3")

    @contextmanager
    def read() -> Iterator[Snapshot]:
        """Let the worker save while the reader works with what it has read."""
        with real() as snapshot:
            yield snapshot
            monkeypatch.undo()
            worker = threading.Thread(target=asking.service.apply, args=(with_third,))
            worker.start()
            worker.join()

    with_third = replace(FLEET, hosts=(*FLEET.hosts, HostSpec(name=three, driver="rack")))
    monkeypatch.setattr(asking.service.store, "read", read)
    asking.reaching.load()
    assert asking.reaching.is_stale
    assert three in [*asking.look(), *asking.look(1.0)]


def test_a_host_saved_during_a_read_is_not_replaced_by_the_older_one(
    asking: ManualProbes, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = asking.service.store.read

    @contextmanager
    def read() -> Iterator[Snapshot]:
        """Let the worker save while the reader works with what it has read."""
        with real() as snapshot:
            yield snapshot
            monkeypatch.undo()
            worker = threading.Thread(target=asking.service.apply, args=(changed,))
            worker.start()
            worker.join()

    first, *others = FLEET.hosts
    changed = replace(FLEET, hosts=(replace(first, at_once=7), *others))
    monkeypatch.setattr(asking.service.store, "read", read)
    asking.reaching.load()
    asking.reaching.ask()
    (call,) = asking.calls
    assert call.task.source is not None
    assert call.task.source.at_once == 7


def test_concurrent_answers_are_all_saved(asking: ManualProbes) -> None:
    many = tuple(HostSpec(name=HostName(f"many-{number}"), driver="rack") for number in range(16))
    asking.service.apply(replace(FLEET, hosts=many))
    assert len([*asking.look(), *asking.look(60.0)]) == len(many)
    assert len(asking.calls) == len(many) - 1
    told = [partial(asking.answer, call, Reached("no route")) for call in asking.calls]
    reading: Callable[[], None] = asking.reaching.load
    at_once([*told, reading, reading])
    asking.work()
    assert set(asking.away()) == {call.task.source.name for call in asking.calls if call.task.source}
    assert len(asking.away()) == len(many) - 1
