"""Decide the next request of a step from the view of its server: pure functions.

The driver looks, decides, sends a request, and looks again later. Decisions use nova's records and the mark
only, so a crash between two calls changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from forewarn.control.driver import Done, DriverTask, Failed
from forewarn.core.basic_types import HostName, Work
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_view import (
    Server,
    ServerAction,
    ServerMark,
    ServerOperation,
    ServerView,
)

_OPERATIONS: Mapping[Work, ServerOperation] = {
    Work.FREEZE: ServerOperation.PAUSE,
    Work.REDEPLOY: ServerOperation.COLD,
    Work.REBOOT: ServerOperation.REBOOT,
    Work.EVICT: ServerOperation.STOP,
    Work.TERMINATE: ServerOperation.STOP,
    Work.START: ServerOperation.START,
    Work.RECOVER: ServerOperation.EVACUATE,
}
_NEED_ACTIVE = frozenset({ServerOperation.PAUSE, ServerOperation.REBOOT, ServerOperation.LIVE})
_MOVES = frozenset({ServerOperation.LIVE, ServerOperation.COLD, ServerOperation.EVACUATE})
# The next check comes after a tenth of the time that the step has taken, within these bounds.
SOONEST, LATEST = timedelta(seconds=1), timedelta(seconds=10)


class UniqueRequest(StrEnum):
    """Requests that must not be repeated, because each one disturbs the machine."""

    FIRST = "first"  # the first request of a step
    FORCED = "forced"  # the second try by force


@dataclass(frozen=True, slots=True)
class Send:
    """Send a server action to nova; without a body, delete the server."""

    body: Mapping[str, Any] | None
    unique: UniqueRequest | None = UniqueRequest.FIRST  # None: idempotent, because nova refuses a repetition


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later."""

    progress: float | None = None
    until: datetime | None = None  # by nova's clock; None: at the usual pace


ServerDecision: TypeAlias = Send | Wait | Done | Failed


def operation_of(task: DriverTask, server: Server, options: OpenStackOptions) -> ServerOperation:
    """Choose nova's operation; a stopped server moves by cold migration, which does not disturb it."""
    if task.work is Work.FREEZE and task.moves:
        return ServerOperation.COLD if server.status == "SHUTOFF" else ServerOperation.LIVE
    if task.work is Work.TERMINATE and options.destroy:
        return ServerOperation.DELETE
    return _OPERATIONS[task.work]


def early_answer(task: DriverTask, operation: ServerOperation, server: Server) -> Done | Failed | None:
    """Return the answer of a step that need not or cannot begin; None if it can."""
    if server.status == "ERROR" and operation not in (ServerOperation.DELETE, ServerOperation.EVACUATE):
        fault = f": {server.fault}" if server.fault else ""
        return Failed(
            f"its server is in status ERROR{fault}; repair it (openstack server set --state), then retry"
        )
    if operation is ServerOperation.STOP and server.status == "SHUTOFF":
        return Done()
    if operation is ServerOperation.START and server.status == "ACTIVE":
        return _done(server)
    if operation in _NEED_ACTIVE and server.status != "ACTIVE":
        return Failed(f"its server is {server.status}, not ACTIVE: find out why, then retry")
    return _done(server) if operation in _MOVES and _has_moved(task, server) else None


def _has_moved(task: DriverTask, server: Server) -> bool:
    """Return whether the server has already moved, outside forewarn."""
    if server.status not in ("ACTIVE", "SHUTOFF") or server.host is None or task.source is None:
        return False
    return server.host == task.target.name if task.target is not None else server.host != task.source.name


def decide(mark: ServerMark, view: ServerView, options: OpenStackOptions) -> ServerDecision:
    """Decide the next request of a step that has begun."""
    server = view.server
    if server is None:
        return (
            Done() if mark.how is ServerOperation.DELETE else Failed("nova does not have its server any more")
        )
    return _DECIDERS[mark.how](mark, view, server, options)


# Moves


def _live(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("live-migration")
    if action is None:
        return Send({"os-migrateLive": {"host": view.target, "block_migration": "auto"}})
    match view.migration_status("live-migration"):
        case None:
            return _without_record(action, server)
        case "completed":
            return _done(server) if server.idle else Wait(progress=1.0)
        case "cancelled":
            return Failed("its live migration was aborted")
        case "error" | "failed":
            return _failed_when_idle("its live migration failed", server, action)
        case _:
            return Wait(progress=view.progress)


def _cold(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("migrate")
    if action is None:
        return Send({"migrate": None if view.target is None else {"host": view.target}})
    match view.migration_status("migration", "resize"):
        case None:
            return _without_record(action, server)
        case "finished" if server.idle and server.status == "VERIFY_RESIZE":
            return Send({"confirmResize": None}, unique=None)
        case "confirmed":
            settled = server.idle and server.status != "VERIFY_RESIZE"
            return _done(server) if settled else Wait()
        case "reverted":
            return Failed("its migration was reverted, and not by forewarn")
        case "error" | "failed":
            return _failed_when_idle("its migration failed", server, action)
        case _:
            return Wait()


def _evacuate(
    mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions
) -> ServerDecision:
    action = view.last("evacuate")
    if action is None:
        return Send({"evacuate": {} if view.target is None else {"host": view.target}})
    match view.migration_status("evacuation"):
        case None:
            return _without_record(action, server)
        case "done" | "completed":
            return _done(server) if server.idle else Wait()
        case "error" | "failed":
            return _failed_when_idle("its evacuation failed", server, action)
        case _:
            return Wait()


def _without_record(action: ServerAction, server: Server) -> ServerDecision:
    """Decide for a move that has an action in nova but no migration record."""
    return _failed_when_idle("nova could not begin", server, action) if action.failed else Wait()


# Operations on the server's host


def _pause(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    paused, resumed = view.last("pause"), view.last("unpause")
    if paused is None:
        return Send({"pause": None})
    if paused.failed:
        return _failed("nova could not pause it", server, paused)
    if resumed is None:
        if not server.idle or server.status != "PAUSED":
            return Wait()
        over = (paused.finished or view.now) + options.freeze_for
        return Send({"unpause": None}, unique=None) if view.now >= over else Wait(until=over)
    if resumed.failed:
        return _failed("it is paused, and nova could not resume it", server, resumed)
    if not server.idle or resumed.finished is None:
        return Wait()
    # nova records the end of both actions.
    impact = None if paused.finished is None else (resumed.finished - paused.finished).total_seconds()
    return Done(impact=impact)


def _reboot(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("reboot")
    if action is None:
        return Send({"reboot": {"type": "SOFT"}})
    # A soft reboot may succeed after the hard reboot was requested, which fails then.
    if view.succeeded("reboot") and server.idle and server.status == "ACTIVE":
        return Done()
    is_soft = view.count("reboot") == 1
    late = view.now >= (action.started or mark.at) + options.reboot_for
    if is_soft and (late or (action.failed and server.idle)):
        return Send({"reboot": {"type": "HARD"}}, unique=UniqueRequest.FORCED)
    return _failed_when_idle("nova could not reboot it", server, action) if action.failed else Wait()


def _stop(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("stop")
    if server.idle and server.status == "SHUTOFF":
        return Done()
    if action is None:
        return Send({"os-stop": None})
    if not server.idle or action.finished is None:
        return Wait()
    if action.failed:
        return _failed("nova could not stop it", server, action)
    return Failed(f"it was stopped and is {server.status} again: it was started outside forewarn")


def _start(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("start")
    if server.idle and server.status == "ACTIVE":
        return _done(server)
    if action is None:
        return Send({"os-start": None})
    if server.idle and action.finished is not None:
        return _failed(f"nova could not start it, and it is {server.status}", server, action)
    return Wait()


def _delete(mark: ServerMark, view: ServerView, server: Server, options: OpenStackOptions) -> ServerDecision:
    action = view.last("delete")
    if action is None:
        return Send(None)
    if server.idle and action.failed:
        return _failed("nova could not delete it", server, action)
    return Done() if server.status in ("DELETED", "SOFT_DELETED") else Wait()


_DECIDERS: Mapping[
    ServerOperation, Callable[[ServerMark, ServerView, Server, OpenStackOptions], ServerDecision]
] = {
    ServerOperation.LIVE: _live,
    ServerOperation.COLD: _cold,
    ServerOperation.EVACUATE: _evacuate,
    ServerOperation.PAUSE: _pause,
    ServerOperation.REBOOT: _reboot,
    ServerOperation.STOP: _stop,
    ServerOperation.START: _start,
    ServerOperation.DELETE: _delete,
}


def _done(server: Server) -> Done:
    return Done(host=None if server.host is None else HostName(server.host))


def _failed_when_idle(text: str, server: Server, action: ServerAction) -> Failed | Wait:
    return _failed(text, server, action) if server.idle else Wait()


def _failed(text: str, server: Server, action: ServerAction) -> Failed:
    why = server.fault or action.why
    return Failed(f"{text}: {why}" if why else text)


def pace(mark: ServerMark, now: datetime) -> timedelta:
    """Return the time until the next check."""
    return min(max((now - mark.at) / 10, SOONEST), LATEST)
