"""Holds that could not be saved. They are kept in memory, and saved before any other decision.

While the store is unavailable, nothing can be announced or started, so a hold in memory takes effect at once.
It is lost if the process ends first, and the response says so. When it is saved, it may turn out to be
invalid: its host or project does not exist, or is held already. A record says so, and the hold is listed as
refused until an operator releases it.
"""

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from forewarn.control.idempotent_calls import IdempotentCall, IdempotentCalls, IdempotentResponse
from forewarn.control.orders.order_use_cases import HostOrders
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.core.admission import holds
from forewarn.core.basic_types import FOREWARN, HostName, Kind, ProjectName
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.model.constraints import Hold
from forewarn.core.model.record import Record
from forewarn.core.orders.order_requests import OrderRequest
from forewarn.store.batch import Transaction

log = logging.getLogger(__name__)

_ABOUT_HOLDS = frozenset({Kind.HOLD_SET, Kind.HOLD_RELEASED})
# More than operators set by hand during an outage of the database.
MOST = 1000
# The newest refused holds; the history has all of them.
REFUSED_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedHold:
    """A hold in memory, and the response to retries of its call."""

    hold: Hold
    call: IdempotentCall | None = None
    answered: IdempotentResponse | None = None  # the response to retries, once the hold is saved
    released_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedHold:
    """A hold that could not be saved, and why. It holds nothing."""

    hold: Hold
    why: str


class UnsavedHolds(UseCase):
    """Sets and releases holds in memory. Any thread may call it; only the worker saves."""

    def __init__(self, context: EngineContext, *, answering: IdempotentCalls) -> None:
        super().__init__(context)
        self._transact = context.transact
        self._answering = answering
        self._hosts = HostOrders(context)
        self._lock = threading.Lock()  # for writers; readers read each immutable tuple without it
        self._unsaved: tuple[UnsavedHold, ...] = ()  # lock: self._lock
        self._known: tuple[Hold, ...] = ()  # the saved holds, as last read; owner: the worker
        self._stale = True  # whether these may have changed since; owner: the worker
        self._refused: tuple[RefusedHold, ...] = ()  # lock: self._lock
        self.refused_total = 0  # owner: the worker

    def new_id(self) -> str:
        """Create the id of a hold, which stays the same if the hold is in memory first."""
        return self._new_id()

    @property
    def in_force(self) -> Sequence[Hold]:
        """The holds that are in memory only. Read this before `known`, so that no hold is missed."""
        return [each.hold for each in self._unsaved if each.released_by is None]

    @property
    def known(self) -> Sequence[Hold]:
        """The saved holds, as of the last read of the store."""
        lifted = {each.hold.id for each in self._unsaved}
        return [hold for hold in self._known if hold.id not in lifted]

    @property
    def refused(self) -> Sequence[RefusedHold]:
        """The holds that could not be saved, until an operator releases them."""
        return self._refused

    def find_refused(self, id_: str) -> Hold | None:
        """Return a refused hold by id."""
        return next((each.hold for each in self._refused if each.hold.id == id_.upper()), None)

    def dismiss(self, refused: Hold) -> None:
        """Remove a hold from the refused ones."""
        with self._lock:
            self._refused = tuple(each for each in self._refused if each.hold.id != refused.id)

    def put(
        self,
        request: OrderRequest,
        *,
        id_: str,
        project: ProjectName | None,
        host: HostName | None,
        abort: bool = False,
        call: IdempotentCall | None = None,
    ) -> Hold:
        """Set a hold in memory; Conflict if the same scope is held already.

        Whether the project or host exists is checked when the hold is saved.
        """
        with self._lock:
            for each in self._unsaved:
                if call is not None and each.call == call:
                    return each.hold
            hold = self._hosts.new_hold(request, id_=id_, project=project, host=host, abort=abort)
            holds.check_free(hold, [*self.known, *self.in_force])
            if len(self._unsaved) >= MOST:
                raise Unavailable("too many holds in memory: hold the whole fleet instead")
            self._unsaved += (UnsavedHold(hold=hold, call=call),)
        log.warning("%s is held by %s, in memory only", holds.reach(hold), hold.by)
        return hold

    def set_response(self, hold: Hold, answered: IdempotentResponse) -> None:
        """Set the response to retries of the call, to be saved with the hold."""
        with self._lock:
            self._unsaved = tuple(
                replace(each, answered=answered) if each.hold.id == hold.id else each
                for each in self._unsaved
            )

    def release(self, id_: str, *, by: str) -> Hold | None:
        """Release a hold that is in memory only; None if there is none."""
        with self._lock:
            found = next((hold for hold in self.in_force if hold.id == id_.upper()), None)
            if found is not None:
                self._unsaved = tuple(
                    replace(each, released_by=by) if each.hold is found else each for each in self._unsaved
                )
        return found

    def heard(self, records: Iterable[Record] | None) -> None:
        """Note saved records, which may change the known holds. None: the outcome of a commit is unknown."""
        if records is None or any(record.kind in _ABOUT_HOLDS for record in records):
            self._stale = True

    def save(self) -> None:
        """Save the holds in memory. Unavailable if that fails: then make no other decision."""
        if unsaved := self._unsaved:
            refused, known = self._transact(lambda tx: self._save_all(tx, unsaved))
            with self._lock:
                # First: a reader without the lock finds each hold in one of the two.
                self._known = known
                saved = {id(each) for each in unsaved}  # `release` has replaced a hold that it released since
                self._unsaved = tuple(each for each in self._unsaved if id(each) not in saved)
                self._refused = (*self._refused, *refused)[-REFUSED_SHOWN:]
                self.refused_total += len(refused)
        if self._stale:
            with self._store.read() as snapshot:
                self._known = tuple(snapshot.rules.around().holds.values())
            self._stale = False

    def _save_all(
        self, tx: Transaction, unsaved: Sequence[UnsavedHold]
    ) -> tuple[list[RefusedHold], tuple[Hold, ...]]:
        """Save holds; return the refused ones, and all holds that are saved then."""
        refused = [refused for each in unsaved if (refused := self._save(tx, each)) is not None]
        return refused, tuple(tx.rules.around().holds.values())

    def _save(self, tx: Transaction, unsaved: UnsavedHold) -> RefusedHold | None:
        """Save a hold once, even if an earlier commit of it is uncertain.

        Its outcome is saved beside it, under the id of the hold as idempotency key. An absent hold
        proves nothing, because the same transaction may have released it.
        """
        hold = unsaved.hold
        once = IdempotentCall(caller=FOREWARN, key=hold.id, method="", path="", body=b"")
        why = self._answering.answer(tx, once, lambda: self._kept(tx, unsaved)).body.decode()
        if why:
            return None if unsaved.released_by is not None else RefusedHold(hold=hold, why=why)
        if unsaved.released_by is not None:
            try:
                with tx.savepoint() as own:
                    self._hosts.release(own, hold.id, by=unsaved.released_by)
            except (Conflict, NotFound) as error:
                log.warning("the hold of %s by %s is not released: %s", holds.reach(hold), hold.by, error)
        return None

    def _kept(self, tx: Transaction, unsaved: UnsavedHold) -> IdempotentResponse:
        """Save a hold; the body of the result is the reason for a refusal, or empty."""
        hold = unsaved.hold
        try:
            with tx.savepoint() as own:  # if the hold is refused, the response is not saved either
                if unsaved.call is not None and unsaved.answered is not None:
                    answered = unsaved.answered
                    self._answering.answer(own, unsaved.call, lambda: answered)
                self._hosts.keep(own, hold, late=True)
        except (Conflict, NotFound) as error:
            log.warning("the hold of %s by %s is not saved: %s", holds.reach(hold), hold.by, error)
            with self._saving(tx) as draft:
                holds.refuse(draft, hold, str(error))
            return IdempotentResponse(status=409, body=str(error).encode())
        return IdempotentResponse(status=0, body=b"")
