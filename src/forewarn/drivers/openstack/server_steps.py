"""Carry out steps of machines: view the server, decide, send a request to nova, and report the state.

The mark in forewarn's store and nova's records since then show how far a step is. If nova works on the server
for another reason, the step waits.
"""

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
from forewarn.core.basic_types import Work
from forewarn.core.model.machine import Machine
from forewarn.drivers.openstack import decisions
from forewarn.drivers.openstack.attempts import ServerAttempts
from forewarn.drivers.openstack.compute_api import (
    BAD_REQUEST,
    CONFLICT,
    NOT_FOUND,
    ComputeApi,
    NovaRefused,
)
from forewarn.drivers.openstack.decisions import Send, ServerDecision, UniqueRequest, Wait
from forewarn.drivers.openstack.options import OpenStackOptions
from forewarn.drivers.openstack.server_view import (
    MARK_KEY,
    Server,
    ServerMark,
    ServerOperation,
    ServerView,
    actions_since,
    kept_mark,
)

# nova can abort a live migration in these states.
ABORTABLE = frozenset({"queued", "preparing", "running"})
# These states come before them: nova can abort the migration soon.
STARTING = frozenset({"accepted", "pre-migrating"})
# nova's actions that steps request; the driver reads the results of these.
_ACTIONS = frozenset(
    ("live-migration", "migrate", "evacuate", "pause", "unpause", "reboot", "stop", "start", "delete")
)


class ServerSteps:
    """Carries out steps with nova; raises NoNovaAnswer and NovaRefused."""

    def __init__(self, options: OpenStackOptions, api: ComputeApi, attempts: ServerAttempts) -> None:
        self._options = options
        self._api = api
        self._attempts = attempts

    def begin(self, task: DriverTask) -> Checked:
        """Return the mark of a new attempt; the driver sends nothing before forewarn has saved the mark."""
        if kept_mark(task) is not None:
            return self.check(task)
        id_ = _server_id(task)
        server, now = self._api.server(id_, now=task.now)
        if server is None:
            return _missing(task)
        if not server.idle:
            return _waiting(task)
        operation = decisions.operation_of(task, server, self._options)
        answer = decisions.early_answer(task, operation, server)
        if answer is not None:
            return answer
        mark = ServerMark(
            order=task.order,
            attempt=task.attempt,
            how=operation,
            at=now,
            after=next((each.request for each in self._api.actions(id_)), ""),
            migration=next((each.id for each in self._api.migrations(id_)), 0),
            user=self._api.user() or "",
            token=self._attempts.new_token(),
        )
        return Running(task.now, mark=f"{mark}")

    def check(self, task: DriverTask) -> Checked:
        """Check a step and continue it."""
        mark = kept_mark(task)
        if mark is None:
            return NotBegun()
        self._attempts.quiet_since(task, mark.token)  # starts the wait for another process's requests
        view = self._view(task, mark)
        if view.server is None and task.work is Work.TERMINATE:
            return Done()  # the server existed when the mark was made
        return self._carry_out(task, mark, view, decisions.decide(mark, view, self._options))

    def cancel(self, task: DriverTask) -> CancelAnswer:
        """Cancel a step before its first request, or a live migration."""
        mark, soon = kept_mark(task), task.now + decisions.SOONEST
        if mark is None:
            return Cancelled() if self._attempts.cancel(task) else Unknown("the step is just beginning", soon)
        quiet_since = self._attempts.quiet_since(task, mark.token)
        view = self._view(task, mark)
        server, decision = view.server, decisions.decide(mark, view, self._options)
        if server is None:
            return TooLate()
        if isinstance(decision, Send) and decision.unique is UniqueRequest.FIRST and server.idle:
            # nova has no trace of the step. Cancel unless a request was sent since then.
            is_cancelled = self._attempts.cancel(task, quiet_since=quiet_since)
            return Cancelled() if is_cancelled else Unknown("a request may be on its way to nova", soon)
        # Reverting a finished cold migration would disturb the guest again.
        return self._abort(task, server, view) if mark.how is ServerOperation.LIVE else TooLate()

    def _abort(self, task: DriverTask, server: Server, view: ServerView) -> CancelAnswer:
        move, soon = view.migration("live-migration"), task.now + decisions.SOONEST
        if move is None or move.status in STARTING:
            return Unknown("its live migration cannot be aborted yet", soon)
        if move.status in ("cancelled", "error", "failed"):
            return Cancelled() if server.idle else Unknown("its live migration is being rolled back", soon)
        if move.status not in ABORTABLE:
            return TooLate()
        try:
            self._api.abort(server.id, move.id)
        except NovaRefused as error:
            if error.status in (CONFLICT, BAD_REQUEST, NOT_FOUND):
                return Unknown("its live migration has progressed in the meantime", soon)
            raise
        return Unknown("its live migration is being aborted", soon)

    def _view(self, task: DriverTask, mark: ServerMark) -> ServerView:
        """View a server, with its actions and migrations since a mark."""
        id_ = _server_id(task)
        actions = tuple(
            self._api.action(id_, each.request) if each.name in _ACTIONS else each
            for each in actions_since(mark, self._api.actions(id_), user=self._api.user())
        )
        moves = tuple(each for each in self._api.migrations(id_) if each.id > mark.migration)
        is_moving = mark.how is ServerOperation.LIVE and bool(moves) and moves[0].status == "running"
        progress = self._api.progress(id_, moves[0].id) if is_moving else None
        # Last, so that the server is not older than its records.
        server, now = self._api.server(id_, now=task.now)
        return ServerView(
            server=server,
            now=now,
            actions=actions,
            migrations=moves,
            progress=progress,
            target=None if task.target is None else task.target.name,
        )

    def _carry_out(
        self, task: DriverTask, mark: ServerMark, view: ServerView, decision: ServerDecision
    ) -> Checked:
        server, is_evacuation = view.server, mark.how is ServerOperation.EVACUATE
        match decision:
            case Done() | Failed():
                return decision
            # nova has accepted the request and will not act until the host is back.
            case Wait() if server is not None and server.host_is_down and not is_evacuation:
                return Unknown(f"nova reports the compute service on {server.host} as down")
            case Wait(progress=progress, until=until):
                return _running(task, mark, view, progress=progress, until=until)
            case Send() if server is None:
                raise ValueError(f"{task.name}: there is no server to send a request for")
            case Send(unique=request):
                if request is None:
                    return self._send(task, mark, view, server, decision)
                return self._send_once(task, mark, view, server, decision, request)

    def _send_once(
        self,
        task: DriverTask,
        mark: ServerMark,
        view: ServerView,
        server: Server,
        what: Send,
        request: UniqueRequest,
    ) -> Checked:
        """Send a unique request, unless an earlier process may have sent it."""
        token = mark.token
        if request is UniqueRequest.FIRST and not server.idle:
            return _running(task, mark, view)
        if not self._attempts.may_send(task, token, request):
            if not self._attempts.is_quiet(task, token):
                return _running(task, mark, view)
            renewed = replace(mark, token=self._attempts.new_token(), at=view.now)
            return Running(task.now, mark=f"{renewed}")
        if request is UniqueRequest.FIRST:
            self._prepare(task, mark, server)
        if not self._attempts.spend(task, token, request):
            return _running(task, mark, view)  # a concurrent call of the same attempt was faster
        try:
            return self._send(task, mark, view, server, what)
        finally:
            self._attempts.note_answered(task)

    def _prepare(self, task: DriverTask, mark: ServerMark, server: Server) -> None:
        """Write a note for people; before an evacuation, mark the fenced host as down in nova."""
        with suppress(NovaRefused):  # nova refuses metadata of a server in status ERROR
            self._api.write(server.id, MARK_KEY, mark.note)
        if mark.how is ServerOperation.EVACUATE and task.source is not None:
            for service in self._api.services(task.source.name):
                if service.up:  # nova evacuates no server from a host that is up
                    self._api.force_down(service)

    def _send(
        self, task: DriverTask, mark: ServerMark, view: ServerView, server: Server, what: Send
    ) -> Checked:
        try:
            if what.body is None:
                self._api.delete(server.id)
            else:
                self._api.act(server.id, what.body)
        except NovaRefused as error:
            if what.unique is not None:
                self._attempts.give_back(task, mark.token, what.unique)
            if self._is_final(task, server, error):
                return Failed(f"nova refuses: {error}")
        return _running(task, mark, view)

    def _is_final(self, task: DriverTask, before: Server, error: NovaRefused) -> bool:
        """Return False for a refusal because nova works on the server for another reason."""
        server, _ = self._api.server(before.id, now=task.now)
        if server is None:
            return False  # the next check reports it
        changed = (server.status, server.task_state) != (before.status, before.task_state)
        return not (error.status == CONFLICT and (changed or not server.idle))


def _waiting(task: DriverTask) -> Running:
    """Wait until nova's current task on the server has ended."""
    return Running(task.now + 2 * decisions.SOONEST)


def _running(
    task: DriverTask,
    mark: ServerMark,
    view: ServerView,
    *,
    progress: float | None = None,
    until: datetime | None = None,
) -> Running:
    wait = decisions.pace(mark, view.now) if until is None else max(decisions.SOONEST, until - view.now)
    return Running(task.now + wait, mark=f"{mark}", progress=progress)


def _server_id(task: DriverTask) -> str:
    return _machine(task).id.lower()


def _machine(task: DriverTask) -> Machine:
    if task.machine is None:
        raise ValueError(f"{task.name} is not a step of a machine")
    return task.machine


def _missing(task: DriverTask) -> Failed:
    """Refuse a machine without a server, also for Terminate: its vm-id may be wrong."""
    missing = f"nova has no server {_server_id(task)}: a machine's vm-id must be the id of its server"
    if task.work is Work.TERMINATE:
        name = _machine(task).name
        return Failed(f"{missing}; if it was deleted, abandon the order and remove {name} from the fleet")
    return Failed(f"{missing} (openstack server list)")
