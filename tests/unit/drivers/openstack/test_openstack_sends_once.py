"""Whatever is lost, late or killed, nova gets an attempt at most once, and never a cancelled one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from forewarn.control.driver import Cancelled, Checked, Done, Failed, NotBegun, Running
from forewarn.core.basic_types import Work
from forewarn.drivers.openstack.attempts import ARRIVED_WITHIN, ServerAttempts
from forewarn.drivers.openstack.compute_api import ComputeApi, NoNovaAnswer
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_steps import ServerSteps
from forewarn.drivers.openstack.server_view import Migration, Server, ServerAction
from tests.unit.drivers.openstack.test_openstack_decisions import NOON, task

HEARD, DROPPED = 0.0, None


class Killed(BaseException):
    """The process was killed."""


class Cloud:
    """A nova that reboots servers at once; some requests are late or lost."""

    def __init__(self) -> None:
        self.time = 0.0
        self.heard: list[str] = []
        self.on_their_way: list[float] = []  # when they arrive
        self.arrives_after: float | None = HEARD
        self.answers = self.kills = False

    def pass_time(self, seconds: float) -> None:
        self.time += seconds
        arrived = [each for each in self.on_their_way if each <= self.time]
        self.on_their_way = [each for each in self.on_their_way if each > self.time]
        self.heard += [f"req-{len(self.heard) + number}" for number in range(len(arrived))]

    # The methods of ComputeApi

    def user(self) -> str | None:
        return None

    def server(self, id_: str, *, now: Any) -> tuple[Server, Any]:
        return Server(id=id_, status="ACTIVE", host="h1"), NOON + timedelta(seconds=self.time)

    def actions(self, id_: str) -> list[ServerAction]:
        return [self.action(id_, each) for each in reversed(self.heard)]

    def action(self, id_: str, request: str) -> ServerAction:
        return ServerAction(request=request, name="reboot", started=NOON, finished=NOON)

    def migrations(self, id_: str) -> list[Migration]:
        return []

    def write(self, id_: str, key: str, value: str) -> None:
        pass

    def act(self, id_: str, body: Mapping[str, Any]) -> None:
        if self.arrives_after is not None:
            self.on_their_way.append(self.time + self.arrives_after)
            self.pass_time(0)
        if self.kills:
            raise Killed
        if not self.answers:
            raise NoNovaAnswer("no answer")


class Engine:
    """forewarn's part: it saves each mark, unless it is killed before."""

    def __init__(self) -> None:
        self.cloud = Cloud()
        self.task = task(Work.REBOOT)
        self.ended: Checked | Cancelled | None = None
        self.start()

    def start(self) -> None:
        attempts = ServerAttempts(lambda: self.cloud.time)
        self.steps = ServerSteps(OpenStackOptions(), cast(ComputeApi, self.cloud), attempts)

    def ask(self, *, cancels: bool = False, saves: bool = True) -> None:
        if self.ended is not None:
            return
        try:
            answer = self.steps.cancel(self.task) if cancels else self.steps.check(self.task)
            if isinstance(answer, NotBegun):
                answer = self.steps.begin(self.task)
        except NoNovaAnswer:
            return
        except Killed:
            self.start()
            return
        if not saves:
            self.start()
        elif isinstance(answer, Running) and answer.mark:
            self.task = replace(self.task, mark=answer.mark)
        elif isinstance(answer, Done | Failed | Cancelled):
            self.ended = answer


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, and the fate of the call and of its request."""

    arrives_after: float | None
    answers: bool
    kills: bool
    saves: bool
    cancels: bool


calls = st.builds(
    Call,
    arrives_after=st.sampled_from([HEARD, HEARD, 5.0, ARRIVED_WITHIN - 1, DROPPED]),
    answers=st.booleans(),
    kills=st.booleans(),
    saves=st.sampled_from([True, True, True, False]),
    cancels=st.sampled_from([False, False, False, True]),
)
waits = st.sampled_from([1.0, 10.0, ARRIVED_WITHIN, 60.0])


@given(happens=st.lists(st.one_of(calls, calls, waits), max_size=30))
def test_nova_gets_an_attempt_at_most_once(
    happens: list[Call | float],
) -> None:
    engine = Engine()
    for each in happens:
        if isinstance(each, float):
            engine.cloud.pass_time(each)
            continue
        engine.cloud.arrives_after, engine.cloud.kills = each.arrives_after, each.kills
        engine.cloud.answers = each.answers and each.arrives_after == HEARD  # an answered request has arrived
        engine.ask(cancels=each.cancels, saves=each.saves)
        assert len(engine.cloud.heard) <= 1
    engine.cloud.arrives_after, engine.cloud.answers, engine.cloud.kills = HEARD, True, False
    for _ in range(6):
        engine.cloud.pass_time(ARRIVED_WITHIN)
        engine.ask()
    assert (engine.ended, len(engine.cloud.heard)) in ((Done(), 1), (Cancelled(), 0))
