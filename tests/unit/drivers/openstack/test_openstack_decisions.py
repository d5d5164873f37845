"""What the OpenStack driver does next, from what nova has written down since its mark."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import (
    Action,
    GroupName,
    HostName,
    MachineId,
    MachineName,
    OrderId,
    ProjectName,
    Work,
)
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.drivers.openstack import decisions
from forewarn.drivers.openstack.decisions import Broken, Finished, Next, Once, Send, Wait
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.sights import (
    How,
    Mark,
    Migration,
    Server,
    ServerAction,
    Sight,
    actions_since,
    kept_mark,
    read_mark,
)

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OPTIONS = OpenStackOptions(freeze_for=2 * SECOND, reboot_for=60 * SECOND)


def server(status: str = "ACTIVE", *, task: str | None = None, host: str = "h1", fault: str = "") -> Server:
    return Server(id="u", status=status, task_state=task, host=host, fault=fault)


def asked(name: str, *, ended: datetime | None = None, failed: bool = False, why: str = "") -> ServerAction:
    return ServerAction(request=f"req-{name}", name=name, finished=ended, failed=failed, why=why)


def moved(type_: str, status: str) -> tuple[Migration, ...]:
    return (Migration(id=7, type=type_, status=status, dest="h2"),)


def following(
    how: How,
    seen: Server | None,
    *actions: ServerAction,
    moves: tuple[Migration, ...] = (),
    after: timedelta = timedelta(),
    target: str | None = None,
) -> Next:
    sight = Sight(
        server=seen, now=NOON + after, actions=actions, migrations=moves, progress=0.5, target=target
    )
    return decisions.decide(Mark(order="O", attempt=1, how=how, at=NOON), sight, OPTIONS)


LIVE, COLD, GONE = asked("live-migration"), asked("migrate"), asked("evacuate")
BUSY = server(task="migrating")


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("running", BUSY, Wait(progress=0.5)),
        ("completed", BUSY, Wait(progress=1.0)),
        ("completed", server(host="h2"), Finished(host="h2")),
        ("error", BUSY, Wait()),
        ("error", server(), Broken("its live migration failed: no room")),
        ("cancelled", server(), Broken("its live migration was aborted")),
    ],
)
def test_a_live_migration_is_what_its_record_says(status: str, seen: Server, expected: Next) -> None:
    why = asked("live-migration", failed=True, why="no room")
    assert following(How.LIVE, seen, why, moves=moved("live-migration", status)) == expected


def test_nova_chooses_the_host_unless_it_is_told() -> None:
    chosen = {"host": None, "block_migration": "auto"}
    assert following(How.LIVE, server()) == Send({"os-migrateLive": chosen})
    assert following(How.LIVE, server(), target="h3") == Send({"os-migrateLive": {**chosen, "host": "h3"}})
    assert following(How.COLD, server()) == Send({"migrate": None})
    assert following(How.COLD, server(), target="h3") == Send({"migrate": {"host": "h3"}})
    assert following(How.EVACUATE, server()) == Send({"evacuate": {}})
    assert following(How.EVACUATE, server(), target="h3") == Send({"evacuate": {"host": "h3"}})


@pytest.mark.parametrize("how", [How.LIVE, How.COLD, How.EVACUATE])
def test_a_move_that_nova_has_no_record_of_is_waited_for_unless_it_failed_before(how: How) -> None:
    name = {How.LIVE: "live-migration", How.COLD: "migrate", How.EVACUATE: "evacuate"}[how]
    assert following(how, BUSY, asked(name)) == Wait()
    assert following(how, server(), asked(name)) == Wait()
    broken = following(how, server(), asked(name, failed=True, why="No valid host"))
    assert broken == Broken("nova could not even begin: No valid host")


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("pre-migrating", BUSY, Wait()),
        ("finished", server("VERIFY_RESIZE", task="resize_finish"), Wait()),
        ("finished", server("VERIFY_RESIZE"), Send({"confirmResize": None}, once=None)),
        ("confirming", server("VERIFY_RESIZE"), Wait()),
        ("confirmed", server("VERIFY_RESIZE"), Wait()),
        ("confirmed", server(host="h2"), Finished(host="h2")),
        ("confirmed", server("SHUTOFF", host="h2"), Finished(host="h2")),
        ("reverted", server(), Broken("its migration was reverted, by other hands")),
        ("error", server(fault="full"), Broken("its migration failed: full")),
        ("error", BUSY, Wait()),
    ],
)
def test_a_cold_migration_is_confirmed(status: str, seen: Server, expected: Next) -> None:
    assert following(How.COLD, seen, COLD, moves=moved("migration", status)) == expected


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("accepted", BUSY, Wait()),
        ("done", BUSY, Wait()),
        ("done", server(host="h2"), Finished(host="h2")),
        ("failed", server("ERROR", fault="no image"), Broken("its evacuation failed: no image")),
    ],
)
def test_an_evacuated_server_is_where_nova_says(status: str, seen: Server, expected: Next) -> None:
    assert following(How.EVACUATE, seen, GONE, moves=moved("evacuation", status)) == expected


def test_a_server_is_paused_and_let_run_again_after_a_while() -> None:
    paused, there = asked("pause", ended=NOON), server("PAUSED")
    assert following(How.PAUSE, server()) == Send({"pause": None})
    assert following(How.PAUSE, server(task="pausing"), asked("pause")) == Wait()
    assert following(How.PAUSE, there, paused, after=SECOND) == Wait(until=NOON + 2 * SECOND)
    assert following(How.PAUSE, there, paused, after=2 * SECOND) == Send({"unpause": None}, once=None)
    assert following(How.PAUSE, there, asked("unpause"), paused) == Wait()
    resumed = asked("unpause", ended=NOON + 3 * SECOND)
    assert following(How.PAUSE, server(), resumed, paused) == Finished(impact=3.0)


def test_a_server_that_cannot_be_paused_or_let_run_again_has_failed() -> None:
    broken = following(How.PAUSE, server(), asked("pause", failed=True, why="no"))
    assert broken == Broken("it could not be paused: no")
    stuck = following(How.PAUSE, server("PAUSED"), asked("unpause", failed=True), asked("pause", ended=NOON))
    assert stuck == Broken("it is paused, and could not be let run again")


def test_a_reboot_is_soft_and_then_hard_once_it_takes_too_long() -> None:
    soft, done = asked("reboot"), asked("reboot", ended=NOON)
    assert following(How.REBOOT, server()) == Send({"reboot": {"type": "SOFT"}})
    assert following(How.REBOOT, server(task="rebooting"), soft, after=59 * SECOND) == Wait()
    hard = Send({"reboot": {"type": "HARD"}}, once=Once.HARDER)
    assert following(How.REBOOT, server(task="rebooting"), soft, after=60 * SECOND) == hard
    assert following(How.REBOOT, server(), asked("reboot", failed=True)) == hard
    assert following(How.REBOOT, server(task="rebooting_hard"), soft, soft, after=90 * SECOND) == Wait()
    assert following(How.REBOOT, server(), done) == Finished()
    assert following(How.REBOOT, server(), asked("reboot", failed=True), done) == Finished()
    begun_late = replace(soft, started=NOON + 30 * SECOND)
    assert following(How.REBOOT, server(task="rebooting"), begun_late, after=60 * SECOND) == Wait()
    failed = asked("reboot", failed=True, why="dead")
    assert following(How.REBOOT, server(), failed, failed) == Broken("it could not be rebooted: dead")


def test_a_server_is_stopped() -> None:
    ended = asked("stop", ended=NOON)
    assert following(How.STOP, server()) == Send({"os-stop": None})
    assert following(How.STOP, server(task="powering-off"), asked("stop")) == Wait()
    assert following(How.STOP, server("SHUTOFF"), ended) == Finished()
    again = Broken("it was stopped, and is ACTIVE again: other hands have started it")
    assert following(How.STOP, server(), ended) == again
    failed = asked("stop", ended=NOON, failed=True)
    assert following(How.STOP, server(), failed) == Broken("it could not be stopped")


def test_a_server_is_started_where_it_is() -> None:
    off = server("SHUTOFF")
    assert following(How.START, off) == Send({"os-start": None})
    assert following(How.START, off, asked("start")) == Wait()
    assert following(How.START, server(), asked("start", ended=NOON)) == Finished(host="h1")
    broken = Broken("it could not be started, and is SHUTOFF")
    assert following(How.START, off, asked("start", ended=NOON, failed=True)) == broken


def test_a_server_is_deleted_once_nova_does_not_know_it() -> None:
    assert following(How.DELETE, server()) == Send(None)
    assert following(How.DELETE, server(task="deleting"), asked("delete")) == Wait()
    assert following(How.DELETE, None, asked("delete")) == Finished()
    assert following(How.DELETE, server("SOFT_DELETED"), asked("delete")) == Finished()
    assert following(How.DELETE, server(), asked("delete", failed=True)) == Broken("it could not be deleted")
    assert following(How.STOP, None) == Broken("nova has no such server any more")


# Before anything is begun


def task(work: Work, *, moves: bool = False, target: str | None = None) -> DriverTask:
    web = Machine(
        id=MachineId("u"),
        name=MachineName("web-0"),
        project=ProjectName("default"),
        group=GroupName("web"),
        host=HostName("h1"),
    )
    return DriverTask(
        order=OrderId("O"),
        attempt=2,
        action=Action.MAINTENANCE,
        work=work,
        machine=web,
        source=Host(name=HostName("h1")),
        target=None if target is None else Host(name=HostName(target)),
        moves=moves,
        begun_at=NOON,
        now=NOON,
        driver="openstack",
    )


@pytest.mark.parametrize(
    ("work", "moves", "status", "how"),
    [
        (Work.FREEZE, False, "ACTIVE", How.PAUSE),
        (Work.FREEZE, True, "ACTIVE", How.LIVE),
        (Work.FREEZE, True, "SHUTOFF", How.COLD),
        (Work.REDEPLOY, True, "ACTIVE", How.COLD),
        (Work.REBOOT, False, "ACTIVE", How.REBOOT),
        (Work.EVICT, False, "ACTIVE", How.STOP),
        (Work.TERMINATE, False, "ACTIVE", How.STOP),
        (Work.START, True, "SHUTOFF", How.START),
        (Work.RECOVER, True, "ACTIVE", How.EVACUATE),
    ],
)
def test_each_work_is_something_that_nova_does(work: Work, moves: bool, status: str, how: How) -> None:
    assert decisions.how(task(work, moves=moves), server(status), OPTIONS) is how


def test_a_server_is_deleted_only_if_that_is_set() -> None:
    destroying = OpenStackOptions(destroy=True)
    assert decisions.how(task(Work.TERMINATE), server(), destroying) is How.DELETE


@pytest.mark.parametrize(
    ("work", "seen", "known"),
    [
        (task(Work.EVICT), server("SHUTOFF"), Finished()),
        (task(Work.START, moves=True), server(), Finished(host="h1")),
        (task(Work.FREEZE, moves=True), server(), None),
        (task(Work.FREEZE, moves=True), server(host="h2"), Finished(host="h2")),
        (task(Work.REDEPLOY, moves=True, target="h3"), server(host="h2"), None),
        (task(Work.REDEPLOY, moves=True, target="h3"), server(host="h3"), Finished(host="h3")),
        (
            task(Work.REBOOT),
            server("SHUTOFF"),
            Broken("its server is SHUTOFF, not ACTIVE: see why, then retry"),
        ),
        (task(Work.RECOVER, moves=True), server("ERROR"), None),
        (
            task(Work.REDEPLOY, moves=True),
            server("ERROR", fault="burnt"),
            Broken(
                "nova has it in status ERROR: burnt; repair it (openstack server set --state), then retry"
            ),
        ),
    ],
)
def test_what_is_there_already_is_not_begun(work: DriverTask, seen: Server, known: Next | None) -> None:
    assert decisions.beforehand(work, decisions.how(work, seen, OPTIONS), seen) == known


# Marks


def test_a_mark_is_read_as_it_was_written_and_its_note_fits_into_metadata() -> None:
    guid = "0" * 36
    mark = Mark(
        order=guid,
        attempt=12,
        how=How.LIVE,
        at=NOON,
        after=f"req-{guid}",
        migration=10**9,
        user="a" * 64,
        token="f" * 16,
    )
    assert read_mark(f"{mark}") == mark
    assert mark.token not in mark.note
    assert len(mark.note) <= 255


def test_a_mark_of_an_earlier_version_is_read_and_has_no_token() -> None:
    written = "order=O attempt=2 how=reboot at=2026-11-16T12:00:00+00:00 after=req-1 migration=3"
    assert read_mark(written) == Mark(
        order="O", attempt=2, how=How.REBOOT, at=NOON, after="req-1", migration=3
    )


@pytest.mark.parametrize("text", ["", "what?", "order=O attempt=x how=stop at=now", "order=O attempt=1"])
def test_what_nobody_of_ours_has_written_is_no_mark(text: str) -> None:
    assert read_mark(text) is None


def test_a_mark_is_that_of_one_attempt() -> None:
    now = task(Work.EVICT)
    mine, later, other = (
        Mark(order=order, attempt=attempt, how=How.STOP, at=NOON)
        for order, attempt in (("O", 2), ("O", 3), ("P", 2))
    )
    assert kept_mark(replace(now, mark=f"{mine}")) == mine
    assert [kept_mark(replace(now, mark=each)) for each in ("", f"{later}", f"{other}")] == [None] * 3


def test_what_was_done_before_the_mark_does_not_count() -> None:
    known = [asked("reboot"), asked("pause"), asked("create")]
    after = Mark(order="O", attempt=1, how=How.STOP, at=NOON, after="req-pause")
    assert [each.name for each in actions_since(after, known)] == ["reboot"]
    never = Mark(order="O", attempt=1, how=How.STOP, at=NOON)
    assert len(actions_since(never, known)) == 3


def test_what_others_have_asked_for_since_is_not_the_steps_work() -> None:
    mine, theirs = (replace(asked("reboot"), request=user, user=user) for user in ("forewarn", "tenant"))
    mark = Mark(order="O", attempt=1, how=How.REBOOT, at=NOON)
    assert actions_since(mark, [theirs, mine], user="forewarn") == (mine,)
    assert actions_since(mark, [theirs, mine], user=None) == (theirs, mine)
    begun_by_another = replace(mark, user="tenant")  # the driver was given another user since
    assert actions_since(begun_by_another, [theirs, mine], user="forewarn") == (theirs, mine)


def test_an_action_has_ended_once_all_of_it_has() -> None:
    event = {"finish_time": "2026-11-16T12:00:01.5", "result": "Success", "details": None}
    said = {"request_id": "r", "action": "pause", "message": None, "events": [event]}
    assert ServerAction.read(said).finished == NOON + 1.5 * SECOND
    assert ServerAction.read({**said, "events": [event, {**event, "finish_time": None}]}).finished is None
    failed = ServerAction.read({**said, "events": [{**event, "result": "Error", "details": "dead"}]})
    assert (failed.failed, failed.why) == (True, "dead")


def test_a_step_is_looked_at_less_often_the_longer_it_takes() -> None:
    mark = Mark(order="O", attempt=1, how=How.LIVE, at=NOON)
    paces = [decisions.pace(mark, NOON + timedelta(seconds=each)) for each in (0, 50, 1000)]
    assert paces == [SECOND, 5 * SECOND, 10 * SECOND]
