"""What is next for a step, from what was seen of its server since its mark: pure, so that all can be tried.

The driver looks, decides, sends what is to be sent, and looks again later. Nothing is decided by what it
remembers of an earlier look, so that a crash between any two of them changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.control.driver import DriverTask
from forewarn.core.basic_types import Work
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.sights import How, Mark, Server, ServerAction, Sight

Body: TypeAlias = Mapping[str, Any]
_USUALLY: Mapping[Work, How] = {
    Work.FREEZE: How.PAUSE,
    Work.REDEPLOY: How.COLD,
    Work.REBOOT: How.REBOOT,
    Work.EVICT: How.STOP,
    Work.TERMINATE: How.STOP,
    Work.START: How.START,
    Work.RECOVER: How.EVACUATE,
}
# How often a step is looked at: after a tenth of the time that it has taken, within these bounds.
SOONEST, LATEST = timedelta(seconds=1), timedelta(seconds=10)


class Once(StrEnum):
    """Requests that change a machine again if they are made again."""

    FIRST = "first"  # what a step begins with
    HARDER = "harder"  # what is tried if that does not help


@dataclass(frozen=True, slots=True)
class Send:
    """Have nova do something to the server: an action of its API; None deletes it."""

    body: Body | None
    once: Once | None = Once.FIRST  # None: nova refuses it once it is done, so that it may be made again


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later."""

    progress: float | None = None
    until: datetime | None = None  # by nova's clock; None: as soon as is usual


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done."""

    host: str | None = None
    impact: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """The step has failed."""

    why: str


Next: TypeAlias = Send | Wait | Finished | Broken
Decide: TypeAlias = Callable[[Mark, Sight, Server, OpenStackOptions], Next]


def how(task: DriverTask, server: Server, options: OpenStackOptions) -> How:
    """Choose what nova is asked to do; a machine that is off moves without being disturbed, so never live."""
    if task.work is Work.FREEZE and task.moves:
        return How.COLD if server.status == "SHUTOFF" else How.LIVE
    if task.work is Work.TERMINATE and options.destroy:
        return How.DELETE
    return _USUALLY[task.work]


def beforehand(task: DriverTask, what: How, server: Server) -> Next | None:
    """Return what can be said before anything is begun; None: it is to be begun."""
    if server.status == "ERROR" and what not in (How.DELETE, How.EVACUATE):
        said = f": {server.fault}" if server.fault else ""
        return Broken(
            f"nova has it in status ERROR{said}; repair it (openstack server set --state), then retry"
        )
    match what:
        case How.STOP if server.status == "SHUTOFF":
            return Finished()
        case How.START if server.status == "ACTIVE":
            return Finished(host=server.host)
        case How.PAUSE | How.REBOOT | How.LIVE if server.status != "ACTIVE":
            return Broken(f"its server is {server.status}, not ACTIVE: see why, then retry")
        case How.LIVE | How.COLD | How.EVACUATE if _is_there(task, server):
            return Finished(host=server.host)
        case _:
            return None


def _is_there(task: DriverTask, server: Server) -> bool:
    """Return whether other hands have moved it already."""
    if server.status not in ("ACTIVE", "SHUTOFF") or server.host is None or task.source is None:
        return False
    return server.host == task.target.name if task.target is not None else server.host != task.source.name


def decide(mark: Mark, sight: Sight, options: OpenStackOptions) -> Next:
    """Return what is next for a step that was begun."""
    server = sight.server
    if server is None:
        return Finished() if mark.how is How.DELETE else Broken("nova has no such server any more")
    return _DECIDING[mark.how](mark, sight, server, options)


# Moves


def _live(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("live-migration")
    if asked is None:
        return Send({"os-migrateLive": {"host": sight.target, "block_migration": "auto"}})
    move = sight.migration("live-migration")
    match move.status if move is not None else None:
        case None:
            return _dropped(asked, server)
        case "completed":
            return Finished(host=server.host) if server.idle else Wait(progress=1.0)
        case "cancelled":
            return Broken("its live migration was aborted")
        case "error" | "failed":
            return Broken(f"its live migration failed{_said(server, asked)}") if server.idle else Wait()
        case _:
            return Wait(progress=sight.progress)


def _cold(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("migrate")
    if asked is None:
        host = {} if sight.target is None else {"host": sight.target}
        return Send({"migrate": host or None})
    move = sight.migration("migration", "resize")
    match move.status if move is not None else None:
        case None:
            return _dropped(asked, server)
        case "finished" if server.idle and server.status == "VERIFY_RESIZE":
            return Send({"confirmResize": None}, once=None)
        case "confirmed":
            settled = server.idle and server.status != "VERIFY_RESIZE"
            return Finished(host=server.host) if settled else Wait()
        case "reverted":
            return Broken("its migration was reverted, by other hands")
        case "error" | "failed":
            return Broken(f"its migration failed{_said(server, asked)}") if server.idle else Wait()
        case _:
            return Wait()


def _evacuate(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("evacuate")
    if asked is None:
        return Send({"evacuate": {} if sight.target is None else {"host": sight.target}})
    move = sight.migration("evacuation")
    match move.status if move is not None else None:
        case None:
            return _dropped(asked, server)
        case "done" | "completed":
            return Finished(host=server.host) if server.idle else Wait()
        case "error" | "failed":
            return Broken(f"its evacuation failed{_said(server, asked)}") if server.idle else Wait()
        case _:
            return Wait()


def _dropped(asked: ServerAction, server: Server) -> Next:
    """Return what is next for a move that nova was asked for and has no record of."""
    if server.idle and asked.failed:
        return Broken(f"nova could not even begin{_said(server, asked)}")
    return Wait()


# What happens where it is


def _pause(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    paused, resumed = sight.last("pause"), sight.last("unpause")
    if paused is None:
        return Send({"pause": None})
    if paused.failed:
        return Broken(f"it could not be paused{_said(server, paused)}")
    if resumed is None:
        if not server.idle or server.status != "PAUSED":
            return Wait()
        over = (paused.finished or sight.now) + options.freeze_for
        return Send({"unpause": None}, once=None) if sight.now >= over else Wait(until=over)
    if resumed.failed:
        return Broken(f"it is paused, and could not be let run again{_said(server, resumed)}")
    if not server.idle or resumed.finished is None:
        return Wait()
    # nova writes down when it was through with both.
    away = None if paused.finished is None else (resumed.finished - paused.finished).total_seconds()
    return Finished(impact=away)


def _reboot(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("reboot")
    if asked is None:
        return Send({"reboot": {"type": "SOFT"}})
    # A soft one may yet end well after a hard one was asked for, which fails then.
    if sight.succeeded("reboot") and server.idle and server.status == "ACTIVE":
        return Finished()
    is_soft = sight.count("reboot") == 1
    late = sight.now >= (asked.started or mark.at) + options.reboot_for
    if is_soft and (late or (asked.failed and server.idle)):
        return Send({"reboot": {"type": "HARD"}}, once=Once.HARDER)
    if asked.failed and server.idle:
        return Broken(f"it could not be rebooted{_said(server, asked)}")
    return Wait()


def _stop(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("stop")
    if server.idle and server.status == "SHUTOFF":
        return Finished()
    if asked is None:
        return Send({"os-stop": None})
    if not server.idle or asked.finished is None:
        return Wait()
    if asked.failed:
        return Broken(f"it could not be stopped{_said(server, asked)}")
    return Broken(f"it was stopped, and is {server.status} again: other hands have started it")


def _start(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("start")
    if server.idle and server.status == "ACTIVE":
        return Finished(host=server.host)
    if asked is None:
        return Send({"os-start": None})
    if server.idle and asked.finished is not None:
        return Broken(f"it could not be started, and is {server.status}{_said(server, asked)}")
    return Wait()


def _delete(mark: Mark, sight: Sight, server: Server, options: OpenStackOptions) -> Next:
    asked = sight.last("delete")
    if asked is None:
        return Send(None)
    if server.idle and asked.failed:
        return Broken(f"it could not be deleted{_said(server, asked)}")
    return Finished() if server.status in ("DELETED", "SOFT_DELETED") else Wait()


_DECIDING: Mapping[How, Decide] = {
    How.LIVE: _live,
    How.COLD: _cold,
    How.EVACUATE: _evacuate,
    How.PAUSE: _pause,
    How.REBOOT: _reboot,
    How.STOP: _stop,
    How.START: _start,
    How.DELETE: _delete,
}


def _said(server: Server, asked: ServerAction) -> str:
    why = server.fault or asked.why
    return f": {why}" if why else ""


def pace(mark: Mark, now: datetime) -> timedelta:
    """Return when to look at a step again, from now on."""
    return min(max((now - mark.at) / 10, SOONEST), LATEST)
