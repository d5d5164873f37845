"""Steps of machines: looks at the server, decides what is next, sends it to nova, says how the step is doing.

What was begun is told by the mark, which forewarn's store has, and by what nova has written down since. What
nova is at already, whoever has asked for it, is waited for.
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
from forewarn.core.basic_types import HostName, Work
from forewarn.core.model.machine import Machine
from forewarn.drivers.openstack import decisions
from forewarn.drivers.openstack.attempts import ServerAttempts
from forewarn.drivers.openstack.compute_api import (
    BAD_REQUEST,
    CONFLICT,
    NOT_FOUND,
    ComputeApi,
    RefusedError,
)
from forewarn.drivers.openstack.decisions import Broken, Finished, Next, Once, Send, Wait
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.sights import MARK_KEY, How, Mark, Server, Sight, actions_since, kept_mark

# How a live migration can be called off: in these states nova aborts it, in those it will soon.
ABORTABLE = frozenset({"queued", "preparing", "running"})
STARTING = frozenset({"accepted", "pre-migrating"})
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

    def __init__(self, options: OpenStackOptions, api: ComputeApi, attempts: ServerAttempts) -> None:
        self._options = options
        self._api = api
        self._attempts = attempts

    def begin(self, task: DriverTask) -> Checked:
        """Return the mark of a step that can be begun: nothing is sent before forewarn has saved it."""
        if kept_mark(task) is not None:
            return self.check(task)
        id_ = _server_id(task)
        server, now = self._api.server(id_, now=task.now)
        if server is None:
            return _not_there(task)
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
            user=self._api.user() or "",
            token=self._attempts.new_token(),
        )
        return Running(task.now, mark=f"{mark}")

    def check(self, task: DriverTask) -> Checked:
        """Look what has become of a step, and go on with it."""
        mark = kept_mark(task)
        if mark is None:
            return NotBegun()
        self._attempts.is_quiet(task, mark.token)  # from now on what another process has sent is waited for
        sight = self._look(task, mark)
        if sight.server is None and task.work is Work.TERMINATE:
            return Done()  # it was there when it was marked
        return self._carried_out(task, mark, sight, decisions.decide(mark, sight, self._options))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Call a step off that nova has not been asked for, or that is a live migration."""
        mark, soon = kept_mark(task), task.now + decisions.SOONEST
        if mark is None:
            return Cancelled() if self._attempts.call_off(task) else Unknown("it is just begun", soon)
        quiet_since = self._attempts.quiet_since(task, mark.token)
        sight = self._look(task, mark)
        server, following = sight.server, decisions.decide(mark, sight, self._options)
        if server is None:
            return TooLate()
        if isinstance(following, Send) and following.once is Once.FIRST and server.idle:
            # Nothing was seen of it, and nothing has been sent since that look.
            is_off = self._attempts.call_off(task, quiet_since=quiet_since)
            return Cancelled() if is_off else Unknown("nova may just be asked for it", soon)
        # A cold migration that is only to be confirmed could be reverted: that would disturb its guest again.
        return self._abort(task, server, sight) if mark.how is How.LIVE else TooLate()

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
            for each in actions_since(mark, self._api.actions(id_), user=self._api.user())
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

    def _carried_out(self, task: DriverTask, mark: Mark, sight: Sight, following: Next) -> Checked:
        server = sight.server
        match following:
            case Send(once=None) if server is not None:
                return self._sent(task, mark, sight, server, following)
            case Send(once=Once() as once) if server is not None:
                return self._sent_once(task, mark, sight, server, following, once)
            case Wait() if server is not None and mark.how is not How.EVACUATE and server.host_is_down:
                # nova writes it down, and nothing comes of it until that is back.
                return Unknown(f"the compute service on {server.host} is down, as nova says")
            case Wait(progress=progress, until=until):
                return _running(task, mark, sight, progress=progress, until=until)
            case _:
                return _ended(following)

    def _sent_once(
        self, task: DriverTask, mark: Mark, sight: Sight, server: Server, what: Send, once: Once
    ) -> Checked:
        """Send what must not be sent twice, if this process may: an earlier one may have sent it."""
        token = mark.token
        if once is Once.FIRST and not server.idle:
            return _running(task, mark, sight)
        if not self._attempts.may_send(task, token, once):
            if not self._attempts.is_quiet(task, token):
                return _running(task, mark, sight)
            anew = replace(mark, token=self._attempts.new_token(), at=sight.now)
            return Running(task.now, mark=f"{anew}")
        if once is Once.FIRST:
            self._prepare(task, mark, server)
        if not self._attempts.spend(task, token, once):
            return _running(task, mark, sight)  # another call of the same attempt was faster
        try:
            return self._sent(task, mark, sight, server, what)
        finally:
            self._attempts.note_answered(task)

    def _prepare(self, task: DriverTask, mark: Mark, server: Server) -> None:
        """Leave a note for people; let nova know that a host is down that was fenced otherwise."""
        with suppress(RefusedError):  # of a server in status ERROR nova writes none
            self._api.write(server.id, MARK_KEY, mark.note)
        if mark.how is How.EVACUATE and task.source is not None:
            for service in self._api.services(task.source.name):
                if service.up:  # else it moves nothing away from there
                    self._api.force_down(service)

    def _sent(self, task: DriverTask, mark: Mark, sight: Sight, server: Server, what: Send) -> Checked:
        try:
            if what.body is None:
                self._api.delete(server.id)
            else:
                self._api.act(server.id, what.body)
        except RefusedError as error:
            if what.once is not None:
                self._attempts.give_back(task, mark.token, what.once)
            refused = self._conflict(task, server, error)
            return refused if isinstance(refused, Failed) else _running(task, mark, sight)
        return _running(task, mark, sight)

    def _conflict(self, task: DriverTask, before: Server, error: RefusedError) -> Running | Failed:
        """Return what a refusal comes to: where nova is at something else, that is waited for."""
        server, _ = self._api.server(before.id, now=task.now)
        if server is None:
            return _waiting(task)  # what that means is seen with the next look
        if error.status == CONFLICT:
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


def _server_id(task: DriverTask) -> str:
    return _machine(task).id.lower()


def _machine(task: DriverTask) -> Machine:
    if task.machine is None:
        raise ValueError(f"{task.name} is nothing that is done to a machine")
    return task.machine


def _not_there(task: DriverTask) -> Failed:
    """Refuse a machine that nova does not know: also one that is to go, as another may be meant."""
    known = f"nova has no server {_server_id(task)}: a machine's vm-id has to be the id of its server"
    if task.work is Work.TERMINATE:
        name = _machine(task).name
        return Failed(f"{known}; if that was deleted, abandon the order and remove {name} from the fleet")
    return Failed(f"{known} (openstack server list)")
