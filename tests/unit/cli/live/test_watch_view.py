"""The live view of small and large fleets in small and large terminals."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.text import Text

from forewarn.cli import terminal
from forewarn.cli.live.change_stream import LinkState
from forewarn.cli.live.fleet_copy import FleetCopy, ServiceTime, WatchedMachine, WatchFilter
from forewarn.cli.live.watch_view import ScreenSize, WatchView
from forewarn.cli.tables import clip
from forewarn.client.calls import OperatorClient
from forewarn.clock import monotonic
from forewarn.core.basic_types import (
    DECLARED,
    Action,
    ApprovalRule,
    EventStatus,
    EventType,
    GroupKind,
    HostName,
    HostState,
    MachineState,
    OrderId,
    OrderState,
    Source,
    Work,
)
from forewarn.core.model.constraints import Waiting
from forewarn.core.model.order import Order
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.fleet_answers import GroupAnswer
from forewarn.wire.answers.order_answers import OrderAnswer, WaitingAnswer
from forewarn.wire.answers.service_answers import HoldAnswer

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def machine(
    name: str, group: str | None, domain: int, state: MachineState = MachineState.RUNNING
) -> WatchedMachine:
    return WatchedMachine(
        name=name, project="default", group=group, host="host-1", update_domain=domain, state=state
    )


def order(id_: str, host: str, state: OrderState) -> OrderAnswer:
    made = Order(
        id=OrderId(id_),
        number=1,
        action=Action.MAINTENANCE,
        work=Work.REBOOT,
        source=Source.PLATFORM,
        project=None,
        machine=None,
        machine_name=None,
        host=HostName(host),
        by="operator",
        created_at=NOW,
        state=state,
        waiting=(Waiting(what="it", reason="waits"),),
    )
    return OrderAnswer.of(made)


def event(
    number: int, *names: str, started: bool = False, order: str = "", simulated: bool = False
) -> ListedEventAnswer:
    return ListedEventAnswer(
        id=f"{number:08X}-0000-4000-8000-000000000000",
        type=EventType.REBOOT,
        status=EventStatus.STARTED if started else EventStatus.SCHEDULED,
        resources=names,
        not_before=NOW + timedelta(minutes=number),
        source=Source.PLATFORM,
        description="",
        duration_seconds=-1,
        approved=False,
        approval=ApprovalRule.ANY,
        awaited=names,
        awaits=None,
        approvals=(),
        deferred=None,
        group="g0",
        update_domain=0,
        order=order,
        announced_at=NOW,
        started_at=NOW if started else None,
        ended_at=None,
        why=None,
        armed_at=None,
        postponed=None,
        stage=0,
        project="default",
        simulated=simulated,
        notice=None,
    )


def copy(groups: int, members: int, **more: Any) -> FleetCopy:
    shown = FleetCopy(
        OperatorClient("http://here"),
        WatchFilter(),
        hosts={"host-1": HostState.OK},
        holds=[],
        rollouts=[],
        **more,
    )
    shown.time = ServiceTime(now=NOW, kind="manual", speed=0, read_at=monotonic())
    for group in range(groups):
        shown.groups[f"g{group}"] = GroupAnswer(
            name=f"g{group}",
            project="default",
            kind=GroupKind.SCALE_SET,
            update_domains=5,
            incarnation=1,
            enabled=True,
            enabled_at=NOW,
            policy={},
            source=DECLARED,
        )
        for number in range(members):
            name = f"g{group}-{number}"
            shown.machines["default", name] = machine(name, f"g{group}", number % 5)
    return shown


def test_an_unready_server_shows_its_reason_in_the_second_line() -> None:
    shown = copy(1, 1, trouble="nothing can be saved; the log says why")
    assert drawn(shown)[1] == "The server is not ready: nothing can be saved; the log says why"
    assert "not ready" not in "".join(drawn(copy(1, 1)))


def test_an_event_held_past_its_not_before_is_shown_as_due() -> None:
    late = replace(event(1, "web-0"), not_before=NOW - timedelta(seconds=20))
    (line,) = (line for line in drawn(copy(1, 1, events=[late])) if "web-0" in line)
    assert "Scheduled" in line
    assert "due for 20 s" in line
    assert "ago" not in line


def freeze(shown: FleetCopy, name: str) -> None:
    shown.machines["default", name] = replace(shown.machines["default", name], state=MachineState.FROZEN)


def drawn(
    shown: FleetCopy, width: int = 80, height: int | None = 24, link: LinkState = LinkState.LIVE
) -> list[str]:
    frame = WatchView(shown).frame(
        ScreenSize(width=width, height=height), link=link, trouble="no server answers"
    )
    return [line.plain for line in frame]


@pytest.mark.parametrize("width", [20, 80, 160])
@pytest.mark.parametrize("height", [5, 8, 24, 50])
@pytest.mark.parametrize(("groups", "members"), [(0, 0), (1, 3), (40, 100)])
def test_a_frame_fits_its_terminal(width: int, height: int, groups: int, members: int) -> None:
    shown = copy(groups, members, events=[event(n, f"g0-{n}") for n in range(1, 30)])
    lines = drawn(shown, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_problems_come_first_even_in_a_large_fleet() -> None:
    shown = copy(40, 100)
    freeze(shown, "g33-7")
    shown.version += 1
    lines = drawn(shown)
    first = next(line for line in lines if line.startswith("g"))
    assert first.startswith("g33")
    assert any("1 frozen (g33-7) · " in line for line in lines)
    assert lines[-1].startswith("… and ")
    assert "4000 machines (3999 running, 1 frozen)" in lines[1]


def test_machines_are_shown_by_name_if_there_is_room() -> None:
    shown = copy(1, 12, events=[event(1, "g0-0"), event(2, "g0-1", started=True)])
    shown.machines["default", "db"] = machine("db", None, 0, state=MachineState.STOPPED)
    lines = drawn(shown, 110)
    assert "  UD 0  ▲ g0-0  ● g0-5  ● g0-10" in lines
    assert "  ○ db" in lines
    assert lines[3].startswith("00000002")
    assert "  Reboot  Started    just started  g0 UD 0" in lines[3]
    assert "  Reboot  Scheduled  in 1 m        g0 UD 0" in lines[4]


def test_a_simulated_event_is_marked() -> None:
    shown = copy(1, 2, events=[event(1, "g0-0", simulated=True), event(2, "g0-1")])
    lines = drawn(shown, 110)
    assert "  Reboot  Scheduled, simulated  in 1 m  g0 UD 0" in lines[3]
    assert "  Reboot  Scheduled             in 2 m  g0 UD 0" in lines[4]


def test_a_fully_simulated_fleet_is_marked_once() -> None:
    shown = copy(1, 2, events=[event(1, "g0-0", simulated=True)], simulated={"host-1"})
    lines = drawn(shown)
    assert [line for line in lines if "simulated" in line] == ["simulated: nothing is really done"]
    assert sum("simulated" in line for line in drawn(shown, terminal.UNBOUNDED)) == 3


def test_a_long_text_wraps_without_losing_words() -> None:
    shown = copy(1, 3)
    why = "update domain 2 of the availability set of the shop is being worked on by another order"
    shown.orders = [
        replace(order("A", "host-1", OrderState.QUEUED), waiting=(WaitingAnswer(what="g0", reason=why),))
    ]
    shown.holds = [
        HoldAnswer(
            id="B",
            reach="everything",
            reason="a change freeze over the holidays, as every year since the fire",
            by="anna",
            at=NOW,
            project=None,
            host=None,
            abort=False,
            still_running=(),
            saved=True,
            note=None,
            refused=None,
        )
    ]
    lines = drawn(shown, 80, 30)
    assert not any("…" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert f"reboot queued: g0: {why}" in text
    assert "as every year since the fire (anna, now)" in text
    host = next(place for place, line in enumerate(lines) if line.startswith("host-1"))
    begins = lines[host].index("reboot")
    below = lines[host + 1]
    assert len(below) - len(below.lstrip()) == begins


def test_a_long_text_is_truncated_to_one_line_in_a_small_terminal() -> None:
    shown = copy(1, 3)
    shown.hosts = {f"host-{number}": HostState.OK for number in range(1, 9)}
    shown.orders = [
        replace(
            order("A", name, OrderState.QUEUED), waiting=(WaitingAnswer(what="g0", reason="waits " * 30),)
        )
        for name in shown.hosts
    ]
    lines = drawn(shown, 80, 18)
    hosts = [line for line in lines if line.startswith("host-")]
    assert len(hosts) == 8
    assert hosts[-1].endswith(" …")
    assert len(lines) <= 18


def test_a_lost_link_is_shown_with_its_reason() -> None:
    first, second, *_ = drawn(copy(1, 3), link=LinkState.LOST)
    assert first.endswith("reconnecting")
    assert second == "no server answers"


def test_machines_are_redrawn_only_after_a_change() -> None:
    shown = copy(1, 3)
    view, size = WatchView(shown), ScreenSize(width=80, height=24)
    before = [line.plain for line in view.frame(size, link=LinkState.LIVE)]
    freeze(shown, "g0-0")
    assert [line.plain for line in view.frame(size, link=LinkState.LIVE)][3:] == before[3:]
    shown.version += 1
    assert "  UD 0  ◐ g0-0" in [line.plain for line in view.frame(size, link=LinkState.LIVE)]


def test_hosts_show_their_state_machines_and_waiting_work() -> None:
    shown = copy(1, 3, events=[event(1, "g0-0", order="A")])
    shown.hosts = {f"host-{number}": HostState.OK for number in (10, 2, 1)} | {"host-3": HostState.CORDONED}
    shown.orders = [order("A", "host-1", OrderState.ANNOUNCED)]
    freeze(shown, "g0-1")
    lines = drawn(shown)
    first = next(place for place, line in enumerate(lines) if line.startswith("host-"))
    assert [line.split("  ")[0] for line in lines[first : first + 4]] == [
        "host-1",
        "host-3",
        "host-2",
        "host-10",
    ]
    assert lines[first] == "host-1   ok        3 machines, 1 frozen  reboot announced, in 1 m: it: waits"
    assert lines[first + 1] == "host-3   cordoned  0 machines"


def test_an_unreachable_host_is_never_shown_as_ok() -> None:
    shown = copy(1, 3, events=[])
    shown.hosts = {"host-1": HostState.OK, "host-2": HostState.OK, "host-3": HostState.CORDONED}
    shown.unreachable = dict.fromkeys(("host-2", "host-3"), "cannot be reached since then: no route")
    lines = drawn(shown, 160)
    first = next(place for place, line in enumerate(lines) if line.startswith("host-"))
    assert [" ".join(line.split()) for line in lines[first : first + 3]] == [
        "host-2 unreachable 0 machines cannot be reached since then: no route",
        "host-3 cordoned, unreachable 0 machines cannot be reached since then: no route",
        "host-1 ok 3 machines",
    ]
    assert any("3 hosts (1 ok, 1 unreachable, 1 cordoned)" in line for line in lines)


def test_waiting_work_on_a_machine_is_shown_on_its_host() -> None:
    shown = copy(1, 3, events=[])
    shown.hosts = {"host-1": HostState.OK}
    on_host = order("A", "host-2", OrderState.STARTED)
    shown.orders = [replace(on_host, project="default", machine="g0-0", host=None, action=Action.RESTART)]
    assert "host-1  ok  3 machines  restart started: it: waits" in drawn(shown)


def test_a_clipped_line_ends_between_words_and_never_within_a_time() -> None:
    line = Text("web-0 waits until 2026-01-05 12:00:00 UTC for web-1")
    for width in range(12, len(line.plain)):
        clipped = clip(line, width).plain
        assert len(clipped) <= width
        assert clipped.endswith(" …")
        assert line.plain.startswith(clipped.removesuffix(" …"))
        assert set(clipped.removesuffix(" …").split()) <= set(line.plain.split())
        assert ("2026-01-05" in clipped) is ("12:00:00 UTC" in clipped)
    assert clip(line, len(line.plain)) == line


def test_an_event_names_a_machine_even_in_little_room() -> None:
    shown = copy(1, 3, events=[event(1, "a-machine-with-a-name", "b-machine-with-a-name")])
    assert any(line.endswith("  a-machine-with-a-name and 1 more") for line in drawn(shown, 105))
    assert any(line.endswith("  a-machine-with-a-name, b-machine-with-a-name") for line in drawn(shown, 130))
