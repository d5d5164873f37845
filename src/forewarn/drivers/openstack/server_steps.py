"""Steps of machines: looks at the server, decides what is next, sends it to nova, says how the step is doing.

It keeps nothing: what was begun is told by the mark, in the server's metadata or in forewarn's store, and by
what nova has written down since. What nova is at already, whoever has asked for it, is waited for.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from forewarn.control.driver import (
    CancelAnswer,
    Cancelled,
    Checked,
    Done,
    DriverTask,
    Failed,
    NotBegun,
    Running,
    TooLate,
    Unknown,
)
from forewarn.core.model.machine import Machine
from forewarn.core.words import HostName, Work
from forewarn.drivers.openstack import decisions, marks
from forewarn.drivers.openstack.compute_api import BAD_REQUEST, CONFLICT, NOT_FOUND, ComputeApi, RefusedError
from forewarn.drivers.openstack.decisions import Broken, Finished, Next, Send, Wait
from forewarn.drivers.openstack.marks import How, Mark
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.sights import Server, Sight, actions_since

# A request that was cut off with whoever sent it has arrived by then, or never will; in seconds.
ARRIVED_WITHIN = 15.0
# How a live migration can be called off: in these states nova aborts it, in those it will soon.
ABORTABLE = frozenset({"queued", "preparing", "running"})
STARTING = frozenset({"accepted", "pre-migrating"})
# nova writes no metadata of a server in status ERROR; for these the mark in the store has to do.
WITHOUT_METADATA = frozenset({How.EVACUATE, How.DELETE})
# The actions of nova that belong to a step: of these it is asked how they ended.
_FOLLOWED: Mapping[How, tuple[str, ...]] = {
    How.LIVE: ("live-migration",),
    How.COLD: ("migrate",),
    How.EVACUATE: ("evacuate",),
    How.PAUSE: ("pause", "unpause"),
    How.REBOOT: ("reboot",),
    How.STOP: ("stop",),
    How.START: ("start",),
    How.DELETE: ("delete",),
}


class ServerSteps:
    """Has nova do the work of steps. What the API raises is let out."""

    def __init__(self, options: OpenStackOptions, api: ComputeApi) -> None:
        self._options = options
        self._api = api

    def begin(self, task: DriverTask) -> Checked:
        """Leave a mark, then have nova begin."""
        id_ = _server_id(task)
        server, now = self._api.server(id_, now=task.now)
        if server is None:
            return _gone(task)
        mark = _mark_of(task, server)
        if mark is not None and mark.is_later_than(task):
            return Failed(f"attempt {mark.attempt} has been begun since")
        if mark is not None and mark.is_of(task):
            return self._go_on(task, mark)  # what was marked and never sent
        if not server.idle:
            return _waiting(task)
        what = decisions.how(task, server, self._options)
        known = decisions.beforehand(task, what, server)
        if known is not None:
            return _ended(known)
        mark = Mark(
            order=task.order,
            attempt=task.attempt,
            how=what,
            at=now,
            after=next((each.request for each in self._api.actions(id_)), ""),
            migration=next((each.id for each in self._api.migrations(id_)), 0),
        )
        try:
            self._api.write(id_, marks.KEY, f"{mark}")
        except RefusedError as error:
            if what not in WITHOUT_METADATA or error.status != CONFLICT:
                return self._conflict(task, server, error)
        return self._go_on(task, mark)

    def check(self, task: DriverTask) -> Checked:
        """Look what has become of a step, and go on with it."""
        server, now = self._api.server(_server_id(task), now=task.now)
        if server is None:
            return _gone(task)
        mark = _mark_of(task, server)
        if mark is not None and mark.is_later_than(task):
            return Failed(f"attempt {mark.attempt} has been begun since")
        if mark is None or not mark.is_of(task):
            return NotBegun() if server.idle else _waiting(task)
        if mark.called_off:
            return Failed("it was called off")
        sight = self._look(task, mark)
        following = decisions.decide(mark, sight, self._options)
        if isinstance(following, Send) and following.first:
            # It is marked, and was not sent, or is not heard of yet: what is sent twice may be done twice.
            arrived = (now - mark.at).total_seconds() >= ARRIVED_WITHIN
            return NotBegun() if arrived and server.idle else _running(task, mark, sight)
        return self._carried_out(task, mark, sight, following)

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off that nova has not been asked for, or that is a live migration."""
        server, now = self._api.server(_server_id(task), now=task.now)
        if server is None:
            return TooLate()
        mark = _mark_of(task, server)
        if mark is None or not mark.is_of(task):
            unmarked = Mark(order=task.order, attempt=task.attempt, how=How.STOP, at=now)
            return self._called_off(server, unmarked)
        if mark.called_off:
            return Cancelled()
        sight = self._look(task, mark)
        following = decisions.decide(mark, sight, self._options)
        if isinstance(following, Send) and following.first and server.idle:
            return self._called_off(server, mark)
        # A cold migration that is only to be confirmed could be reverted: that would disturb its guest again.
        return self._abort(task, server, sight) if mark.how is How.LIVE else TooLate()

    def _called_off(self, server: Server, mark: Mark) -> Cancelled:
        """Let a `begin` that comes later, from another process, find that the step was called off."""
        with suppress(RefusedError):  # of one that is broken: then this process alone remembers
            self._api.write(server.id, marks.KEY, f"{replace(mark, called_off=True)}")
        return Cancelled()

    def _abort(self, task: DriverTask, server: Server, sight: Sight) -> CancelAnswer:
        move, soon = sight.migration("live-migration"), task.now + decisions.SOONEST
        if move is None or move.status in STARTING:
            return Unknown("its live migration cannot be aborted yet", soon)
        if move.status in ("cancelled", "error", "failed"):
            settled = sight.server is not None and sight.server.idle
            return Cancelled() if settled else Unknown("its live migration is being taken back", soon)
        if move.status not in ABORTABLE:
            return TooLate()
        try:
            self._api.abort(server.id, move.id)
        except RefusedError as error:
            if error.status in (CONFLICT, BAD_REQUEST, NOT_FOUND):
                return Unknown("its live migration has gone on meanwhile", soon)
            raise
        return Unknown("its live migration is being aborted", soon)

    # Looking, and going on

    def _look(self, task: DriverTask, mark: Mark) -> Sight:
        """Look at a server, and at what was done to it since a mark."""
        id_ = _server_id(task)
        followed = _FOLLOWED[mark.how]
        actions = tuple(
            self._api.action(id_, each.request) if each.name in followed else each
            for each in actions_since(mark, self._api.actions(id_))
        )
        moves = tuple(each for each in self._api.migrations(id_) if each.id > mark.migration)
        is_moving = mark.how is How.LIVE and bool(moves) and moves[0].status == "running"
        progress = self._api.progress(id_, moves[0].id) if is_moving else None
        server, now = self._api.server(
            id_, now=task.now
        )  # last, so that it is no older than what it is judged by
        return Sight(
            server=server,
            now=now,
            actions=actions,
            migrations=moves,
            progress=progress,
            target=None if task.target is None else task.target.name,
        )

    def _go_on(self, task: DriverTask, mark: Mark) -> Checked:
        """Go on with a step that is marked."""
        if mark.called_off:
            return Failed("it was called off")
        if mark.how is How.EVACUATE:
            self._take_down(task)
        sight = self._look(task, mark)
        return self._carried_out(task, mark, sight, decisions.decide(mark, sight, self._options))

    def _take_down(self, task: DriverTask) -> None:
        """Have nova take a host to be down that was fenced otherwise: else it moves nothing away from it."""
        for service in self._api.services(task.source.name) if task.source is not None else ():
            if service.up:
                self._api.force_down(service)

    def _carried_out(self, task: DriverTask, mark: Mark, sight: Sight, following: Next) -> Checked:
        server = sight.server
        match following:
            case Send(body=body) if server is not None:
                return self._sent(task, mark, sight, server, body)
            case Wait() if server is not None and mark.how is not How.EVACUATE and server.host_is_down:
                # nova writes it down, and nothing comes of it until that is back.
                return Unknown(f"the compute service on {server.host} is down, as nova says")
            case Wait(progress=progress, until=until):
                return _running(task, mark, sight, progress=progress, until=until)
            case _:
                return _ended(following)

    def _sent(
        self, task: DriverTask, mark: Mark, sight: Sight, server: Server, body: decisions.Body | None
    ) -> Checked:
        try:
            if body is None:
                self._api.delete(server.id)
            else:
                self._api.act(server.id, body)
        except RefusedError as error:
            refused = self._conflict(task, server, error)
            return refused if isinstance(refused, Failed) else _running(task, mark, sight)
        return _running(task, mark, sight)

    def _conflict(self, task: DriverTask, before: Server, error: RefusedError) -> Running | Failed:
        """Return what a refusal comes to: where nova is at something else, that is waited for."""
        server, _ = self._api.server(before.id, now=task.now)
        if error.status == CONFLICT and server is not None:
            changed = (server.status, server.task_state) != (before.status, before.task_state)
            if changed or not server.idle:
                return _waiting(task)
        return Failed(f"nova refuses: {error}")


def _waiting(task: DriverTask) -> Running:
    """Wait until nova is through with something else."""
    return Running(task.now + 2 * decisions.SOONEST)


def _running(
    task: DriverTask,
    mark: Mark,
    sight: Sight,
    *,
    progress: float | None = None,
    until: datetime | None = None,
) -> Running:
    wait = decisions.pace(mark, sight.now) if until is None else max(decisions.SOONEST, until - sight.now)
    return Running(task.now + wait, mark=f"{mark}", progress=progress)


def _ended(known: Next) -> Done | Failed:
    match known:
        case Finished(host=host, impact=impact):
            return Done(host=None if host is None else HostName(host), impact=impact)
        case Broken(why=why):
            return Failed(why)
        case _:
            raise TypeError(f"{known} is no end of a step")


def _mark_of(task: DriverTask, server: Server) -> Mark | None:
    """Return the mark of a step: the store's, unless the server says more."""
    kept, written = (
        marks.read(task.mark),
        decisions.believed(task, marks.read(server.metadata.get(marks.KEY, ""))),
    )
    if kept is None or written is None:
        return kept or written
    says_more = written.is_later_than(task) or (written.is_of(task) and written.called_off)
    return written if says_more else kept


def _server_id(task: DriverTask) -> str:
    return _machine(task).id.lower()


def _machine(task: DriverTask) -> Machine:
    if task.machine is None:
        raise ValueError(f"{task.name} is nothing that is done to a machine")
    return task.machine


def _gone(task: DriverTask) -> Done | Failed:
    """Return what it means that there is no such server: one that was to go has gone."""
    if task.work is Work.TERMINATE:
        return Done()
    said = f"nova has no server {_server_id(task)}"
    return Failed(f"{said}: a machine's vm-id has to be the id of its server (openstack server list)")
