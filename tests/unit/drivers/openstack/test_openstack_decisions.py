"""Decisions of the OpenStack driver from nova's records since the mark."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forewarn.control.driver import Done, DriverTask, Failed
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
from forewarn.drivers.openstack.decisions import Send, UniqueRequest, Wait
from forewarn.drivers.openstack.decisions import ServerDecision as Decision
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_view import (
    Migration,
    Server,
    ServerAction,
    ServerMark,
    ServerView,
    actions_since,
    kept_mark,
    read_mark,
)
from forewarn.drivers.openstack.server_view import ServerOperation as Op

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
    how: Op,
    seen: Server | None,
    *actions: ServerAction,
    moves: tuple[Migration, ...] = (),
    after: timedelta = timedelta(),
    target: str | None = None,
) -> Decision:
    sight = ServerView(
        server=seen, now=NOON + after, actions=actions, migrations=moves, progress=0.5, target=target
    )
    return decisions.decide(ServerMark(order="O", attempt=1, how=how, at=NOON), sight, OPTIONS)


LIVE, COLD, GONE = asked("live-migration"), asked("migrate"), asked("evacuate")
BUSY = server(task="migrating")


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("running", BUSY, Wait(progress=0.5)),
        ("completed", BUSY, Wait(progress=1.0)),
        ("completed", server(host="h2"), Done(host="h2")),
        ("error", BUSY, Wait()),
        ("error", server(), Failed("its live migration failed: no room")),
        ("cancelled", server(), Failed("its live migration was aborted")),
    ],
)
def test_a_live_migration_follows_its_record(status: str, seen: Server, expected: Decision) -> None:
    why = asked("live-migration", failed=True, why="no room")
    assert following(Op.LIVE, seen, why, moves=moved("live-migration", status)) == expected


def test_nova_chooses_the_host_unless_a_target_is_given() -> None:
    chosen = {"host": None, "block_migration": "auto"}
    assert following(Op.LIVE, server()) == Send({"os-migrateLive": chosen})
    assert following(Op.LIVE, server(), target="h3") == Send({"os-migrateLive": {**chosen, "host": "h3"}})
    assert following(Op.COLD, server()) == Send({"migrate": None})
    assert following(Op.COLD, server(), target="h3") == Send({"migrate": {"host": "h3"}})
    assert following(Op.EVACUATE, server()) == Send({"evacuate": {}})
    assert following(Op.EVACUATE, server(), target="h3") == Send({"evacuate": {"host": "h3"}})


@pytest.mark.parametrize("how", [Op.LIVE, Op.COLD, Op.EVACUATE])
def test_a_move_without_a_record_is_waited_for_unless_its_action_failed(
    how: Op,
) -> None:
    name = {
        Op.LIVE: "live-migration",
        Op.COLD: "migrate",
        Op.EVACUATE: "evacuate",
    }[how]
    assert following(how, BUSY, asked(name)) == Wait()
    assert following(how, server(), asked(name)) == Wait()
    broken = following(how, server(), asked(name, failed=True, why="No valid host"))
    assert broken == Failed("nova could not begin: No valid host")


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("pre-migrating", BUSY, Wait()),
        ("finished", server("VERIFY_RESIZE", task="resize_finish"), Wait()),
        ("finished", server("VERIFY_RESIZE"), Send({"confirmResize": None}, unique=None)),
        ("confirming", server("VERIFY_RESIZE"), Wait()),
        ("confirmed", server("VERIFY_RESIZE"), Wait()),
        ("confirmed", server(host="h2"), Done(host="h2")),
        ("confirmed", server("SHUTOFF", host="h2"), Done(host="h2")),
        ("reverted", server(), Failed("its migration was reverted, and not by forewarn")),
        ("error", server(fault="full"), Failed("its migration failed: full")),
        ("error", BUSY, Wait()),
    ],
)
def test_a_cold_migration_is_confirmed(status: str, seen: Server, expected: Decision) -> None:
    assert following(Op.COLD, seen, COLD, moves=moved("migration", status)) == expected


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("accepted", BUSY, Wait()),
        ("done", BUSY, Wait()),
        ("done", server(host="h2"), Done(host="h2")),
        ("failed", server("ERROR", fault="no image"), Failed("its evacuation failed: no image")),
    ],
)
def test_an_evacuated_server_is_on_the_host_that_nova_reports(
    status: str, seen: Server, expected: Decision
) -> None:
    assert following(Op.EVACUATE, seen, GONE, moves=moved("evacuation", status)) == expected


def test_a_server_is_paused_and_resumed_after_freeze_for() -> None:
    paused, there = asked("pause", ended=NOON), server("PAUSED")
    assert following(Op.PAUSE, server()) == Send({"pause": None})
    assert following(Op.PAUSE, server(task="pausing"), asked("pause")) == Wait()
    assert following(Op.PAUSE, there, paused, after=SECOND) == Wait(until=NOON + 2 * SECOND)
    assert following(Op.PAUSE, there, paused, after=2 * SECOND) == Send({"unpause": None}, unique=None)
    assert following(Op.PAUSE, there, asked("unpause"), paused) == Wait()
    resumed = asked("unpause", ended=NOON + 3 * SECOND)
    assert following(Op.PAUSE, server(), resumed, paused) == Done(impact=3.0)


def test_a_server_that_cannot_be_paused_or_resumed_is_a_failure() -> None:
    broken = following(Op.PAUSE, server(), asked("pause", failed=True, why="no"))
    assert broken == Failed("nova could not pause it: no")
    stuck = following(Op.PAUSE, server("PAUSED"), asked("unpause", failed=True), asked("pause", ended=NOON))
    assert stuck == Failed("it is paused, and nova could not resume it")


def test_a_soft_reboot_that_takes_too_long_becomes_a_hard_one() -> None:
    soft, done = asked("reboot"), asked("reboot", ended=NOON)
    assert following(Op.REBOOT, server()) == Send({"reboot": {"type": "SOFT"}})
    assert following(Op.REBOOT, server(task="rebooting"), soft, after=59 * SECOND) == Wait()
    hard = Send({"reboot": {"type": "HARD"}}, unique=UniqueRequest.FORCED)
    assert following(Op.REBOOT, server(task="rebooting"), soft, after=60 * SECOND) == hard
    assert following(Op.REBOOT, server(), asked("reboot", failed=True)) == hard
    assert following(Op.REBOOT, server(task="rebooting_hard"), soft, soft, after=90 * SECOND) == Wait()
    assert following(Op.REBOOT, server(), done) == Done()
    assert following(Op.REBOOT, server(), asked("reboot", failed=True), done) == Done()
    begun_late = replace(soft, started=NOON + 30 * SECOND)
    assert following(Op.REBOOT, server(task="rebooting"), begun_late, after=60 * SECOND) == Wait()
    failed = asked("reboot", failed=True, why="dead")
    assert following(Op.REBOOT, server(), failed, failed) == Failed("nova could not reboot it: dead")


def test_a_server_is_stopped() -> None:
    ended = asked("stop", ended=NOON)
    assert following(Op.STOP, server()) == Send({"os-stop": None})
    assert following(Op.STOP, server(task="powering-off"), asked("stop")) == Wait()
    assert following(Op.STOP, server("SHUTOFF"), ended) == Done()
    again = Failed("it was stopped and is ACTIVE again: it was started outside forewarn")
    assert following(Op.STOP, server(), ended) == again
    failed = asked("stop", ended=NOON, failed=True)
    assert following(Op.STOP, server(), failed) == Failed("nova could not stop it")


def test_a_server_is_started_on_its_host() -> None:
    off = server("SHUTOFF")
    assert following(Op.START, off) == Send({"os-start": None})
    assert following(Op.START, off, asked("start")) == Wait()
    assert following(Op.START, server(), asked("start", ended=NOON)) == Done(host="h1")
    broken = Failed("nova could not start it, and it is SHUTOFF")
    assert following(Op.START, off, asked("start", ended=NOON, failed=True)) == broken


def test_a_server_that_nova_does_not_have_is_deleted() -> None:
    assert following(Op.DELETE, server()) == Send(None)
    assert following(Op.DELETE, server(task="deleting"), asked("delete")) == Wait()
    assert following(Op.DELETE, None, asked("delete")) == Done()
    assert following(Op.DELETE, server("SOFT_DELETED"), asked("delete")) == Done()
    assert following(Op.DELETE, server(), asked("delete", failed=True)) == Failed("nova could not delete it")
    assert following(Op.STOP, None) == Failed("nova does not have its server any more")


# Before the first request


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
        (Work.FREEZE, False, "ACTIVE", Op.PAUSE),
        (Work.FREEZE, True, "ACTIVE", Op.LIVE),
        (Work.FREEZE, True, "SHUTOFF", Op.COLD),
        (Work.REDEPLOY, True, "ACTIVE", Op.COLD),
        (Work.REBOOT, False, "ACTIVE", Op.REBOOT),
        (Work.EVICT, False, "ACTIVE", Op.STOP),
        (Work.TERMINATE, False, "ACTIVE", Op.STOP),
        (Work.START, True, "SHUTOFF", Op.START),
        (Work.RECOVER, True, "ACTIVE", Op.EVACUATE),
    ],
)
def test_each_work_has_an_operation_of_nova(work: Work, moves: bool, status: str, how: Op) -> None:
    assert decisions.operation_of(task(work, moves=moves), server(status), OPTIONS) is how


def test_a_server_is_deleted_only_with_destroy() -> None:
    destroying = OpenStackOptions(destroy=True)
    assert decisions.operation_of(task(Work.TERMINATE), server(), destroying) is Op.DELETE


@pytest.mark.parametrize(
    ("work", "seen", "known"),
    [
        (task(Work.EVICT), server("SHUTOFF"), Done()),
        (task(Work.START, moves=True), server(), Done(host="h1")),
        (task(Work.FREEZE, moves=True), server(), None),
        (task(Work.FREEZE, moves=True), server(host="h2"), Done(host="h2")),
        (task(Work.REDEPLOY, moves=True, target="h3"), server(host="h2"), None),
        (task(Work.REDEPLOY, moves=True, target="h3"), server(host="h3"), Done(host="h3")),
        (
            task(Work.REBOOT),
            server("SHUTOFF"),
            Failed("its server is SHUTOFF, not ACTIVE: find out why, then retry"),
        ),
        (task(Work.RECOVER, moves=True), server("ERROR"), None),
        (
            task(Work.REDEPLOY, moves=True),
            server("ERROR", fault="burnt"),
            Failed(
                "its server is in status ERROR: burnt; repair it (openstack server set --state), then retry"
            ),
        ),
    ],
)
def test_a_step_that_is_already_done_or_impossible_does_not_begin(
    work: DriverTask, seen: Server, known: Decision | None
) -> None:
    assert decisions.early_answer(work, decisions.operation_of(work, seen, OPTIONS), seen) == known


# Marks


def test_a_mark_survives_writing_and_its_note_fits_into_metadata() -> None:
    guid = "0" * 36
    mark = ServerMark(
        order=guid,
        attempt=12,
        how=Op.LIVE,
        at=NOON,
        after=f"req-{guid}",
        migration=10**9,
        user="a" * 64,
        token="f" * 16,
    )
    assert read_mark(f"{mark}") == mark
    assert mark.token not in mark.note
    assert len(mark.note) <= 255


def test_a_mark_of_an_earlier_version_has_no_token() -> None:
    written = "order=O attempt=2 how=reboot at=2026-11-16T12:00:00+00:00 after=req-1 migration=3"
    assert read_mark(written) == ServerMark(
        order="O", attempt=2, how=Op.REBOOT, at=NOON, after="req-1", migration=3
    )


@pytest.mark.parametrize("text", ["", "what?", "order=O attempt=x how=stop at=now", "order=O attempt=1"])
def test_a_foreign_text_is_no_mark(text: str) -> None:
    assert read_mark(text) is None


def test_a_mark_belongs_to_one_attempt() -> None:
    now = task(Work.EVICT)
    mine, later, other = (
        ServerMark(order=order, attempt=attempt, how=Op.STOP, at=NOON)
        for order, attempt in (("O", 2), ("O", 3), ("P", 2))
    )
    assert kept_mark(replace(now, mark=f"{mine}")) == mine
    assert [kept_mark(replace(now, mark=each)) for each in ("", f"{later}", f"{other}")] == [None] * 3


def test_actions_before_the_mark_do_not_count() -> None:
    known = [asked("reboot"), asked("pause"), asked("create")]
    after = ServerMark(order="O", attempt=1, how=Op.STOP, at=NOON, after="req-pause")
    assert [each.name for each in actions_since(after, known)] == ["reboot"]
    never = ServerMark(order="O", attempt=1, how=Op.STOP, at=NOON)
    assert len(actions_since(never, known)) == 3


def test_actions_of_other_users_do_not_count() -> None:
    mine, theirs = (replace(asked("reboot"), request=user, user=user) for user in ("forewarn", "tenant"))
    mark = ServerMark(order="O", attempt=1, how=Op.REBOOT, at=NOON)
    assert actions_since(mark, [theirs, mine], user="forewarn") == (mine,)
    assert actions_since(mark, [theirs, mine], user=None) == (theirs, mine)
    begun_by_another = replace(mark, user="tenant")  # the driver has another user now
    assert actions_since(begun_by_another, [theirs, mine], user="forewarn") == (theirs, mine)


def test_an_action_is_finished_when_all_its_events_are() -> None:
    event = {"finish_time": "2026-11-16T12:00:01.5", "result": "Success", "details": None}
    said = {"request_id": "r", "action": "pause", "message": None, "events": [event]}
    assert ServerAction.read(said).finished == NOON + 1.5 * SECOND
    assert ServerAction.read({**said, "events": [event, {**event, "finish_time": None}]}).finished is None
    failed = ServerAction.read({**said, "events": [{**event, "result": "Error", "details": "dead"}]})
    assert (failed.failed, failed.why) == (True, "dead")


def test_the_longer_a_step_takes_the_rarer_are_its_checks() -> None:
    mark = ServerMark(order="O", attempt=1, how=Op.LIVE, at=NOON)
    paces = [decisions.pace(mark, NOON + timedelta(seconds=each)) for each in (0, 50, 1000)]
    assert paces == [SECOND, 5 * SECOND, 10 * SECOND]
