"""Holds that could not be saved: kept in memory, and saved before anything else is decided.

Nothing can be announced or started while nothing can be saved, so that such a hold is obeyed from the moment
it is set. It is lost if the process ends first; who sets it is told so. One whose host or project does
not exist, or is held already, is refused when it is saved: that is recorded, and shown until it is released.
"""

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from forewarn.control.idempotent_calls import IdempotentResponse, IdempotentCalls, IdempotentCall
from forewarn.control.orders.order_use_cases import HostOrders
from forewarn.control.use_case import EngineContext, UseCase
from forewarn.core.admission import holds
from forewarn.core.basic_types import FOREWARN, HostName, Kind, ProjectName
from forewarn.core.errors import Conflict, NotFound, Unavailable
from forewarn.core.model.constraints import Hold
from forewarn.core.model.record import Record
from forewarn.core.orders.requests import OrderRequest
from forewarn.store.batch import Transaction

log = logging.getLogger(__name__)

_ABOUT_HOLDS = frozenset({Kind.HOLD_SET, Kind.HOLD_RELEASED})
# Nobody sets so many by hand while a database is away.
MOST = 1000
# Of those that were refused, the newest; the history has all.
REFUSED_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedHold:
    """A hold in memory, and what its caller may repeat to be answered again."""

    hold: Hold
    call: IdempotentCall | None = None
    answered: IdempotentResponse | None = None  # as it is repeated once it is saved
    released_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedHold:
    """A hold of memory that could not be kept, and why; it holds nothing."""

    hold: Hold
    why: str


class HoldsInMemory(Protocol):
    """What there is of holds in memory, as any thread may ask."""

    @property
    def in_force(self) -> Sequence[Hold]:
        """Holds that are in memory alone."""
        ...

    @property
    def known(self) -> Sequence[Hold]:
        """Holds that are saved, as far as that was known when the store was last read."""
        ...

    @property
    def refused(self) -> Sequence[RefusedHold]:
        """Those that were refused when they were to be saved, until somebody releases them."""
        ...


class UnsavedHolds(UseCase):
    """Sets and lifts holds while nothing can be saved; any thread may ask, the worker saves."""

    def __init__(self, context: EngineContext, *, answering: IdempotentCalls) -> None:
        super().__init__(context)
        self._transact = context.transact
        self._answering = answering
        self._hosts = HostOrders(context)
        self._lock = threading.Lock()  # for writers: each tuple is replaced, and read as it is
        self._unsaved: tuple[UnsavedHold, ...] = ()  # lock: self._lock
        self._known: tuple[Hold, ...] = ()  # those that are saved, as last read; owner: the worker
        self._stale = True  # whether those may have changed since; owner: the worker
        self._refused: tuple[RefusedHold, ...] = ()  # lock: self._lock
        self.refused_total = 0  # owner: the worker

    def new_id(self) -> str:
        """Make the id of a hold: the same whether it is saved at once or kept in memory first."""
        return self._new_id()

    @property
    def in_force(self) -> Sequence[Hold]:
        """Holds that are in memory alone."""
        return [each.hold for each in self._unsaved if each.released_by is None]

    @property
    def known(self) -> Sequence[Hold]:
        """Holds that are saved, as far as that was known when the store was last read."""
        lifted = {each.hold.id for each in self._unsaved}
        return [hold for hold in self._known if hold.id not in lifted]

    @property
    def refused(self) -> Sequence[RefusedHold]:
        """Those that were refused when they were to be saved, until somebody releases them."""
        return self._refused

    def find_refused(self, id_: str) -> Hold | None:
        """Return a hold that was refused."""
        return next((each.hold for each in self._refused if each.hold.id == id_.upper()), None)

    def dismiss(self, refused: Hold) -> None:
        """Show a hold that was refused no longer."""
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
        """Set a hold in memory; Conflict if the same thing is held already.

        Whether the project or the host exists is found out when it is saved.
        """
        with self._lock:
            for each in self._unsaved:
                if call is not None and each.call == call:
                    return each.hold
            hold = Hold(
                id=id_,
                reason=request.reason,
                by=request.by,
                at=self._clock.now(),
                project=project,
                host=host,
                abort=abort,
            )
            holds.check_free(hold, [*self.known, *self.in_force])
            if len(self._unsaved) >= MOST:
                raise Unavailable("more holds cannot be kept in memory: hold the whole fleet")
            self._unsaved += (UnsavedHold(hold=hold, call=call),)
        log.warning("%s is held by %s, in memory only", holds.reach(hold), hold.by)
        return hold

    def set_response(self, hold: Hold, answered: IdempotentResponse) -> None:
        """Take what a repeated call is answered once the hold is saved."""
        with self._lock:
            self._unsaved = tuple(
                replace(each, answered=answered) if each.hold.id == hold.id else each
                for each in self._unsaved
            )

    def release(self, id_: str, *, by: str) -> Hold | None:
        """Lift a hold that is in memory alone; None if it is not."""
        with self._lock:
            found = next((hold for hold in self.in_force if hold.id == id_.upper()), None)
            if found is not None:
                self._unsaved = tuple(
                    replace(each, released_by=by) if each.hold is found else each for each in self._unsaved
                )
        return found

    def heard(self, records: Iterable[Record] | None) -> None:
        """Take note of what was saved; None: that is not known."""
        if records is None or any(record.kind in _ABOUT_HOLDS for record in records):
            self._stale = True

    def save(self) -> None:
        """Save what is in memory alone; Unavailable if it cannot be: then nothing else must be decided."""
        if unsaved := self._unsaved:
            refused = self._transact(lambda tx: self._save_all(tx, unsaved))
            with self._lock:
                saved = {id(each) for each in unsaved}  # one that was lifted meanwhile is another
                self._unsaved = tuple(each for each in self._unsaved if id(each) not in saved)
                self._refused = (*self._refused, *refused)[-REFUSED_SHOWN:]
                self.refused_total += len(refused)
            self._stale = True
        if self._stale:
            with self._store.read() as snapshot:
                self._known = tuple(snapshot.rules.around().holds.values())
            self._stale = False

    def _save_all(self, tx: Transaction, unsaved: Sequence[UnsavedHold]) -> list[RefusedHold]:
        """Save holds; return those that cannot be kept, with the reasons."""
        return [refused for each in unsaved if (refused := self._save(tx, each)) is not None]

    def _save(self, tx: Transaction, unsaved: UnsavedHold) -> RefusedHold | None:
        """Save a hold once, though the database may not have answered the commit of an earlier try.

        What became of it is saved beside it: that the hold is not there says nothing, because it may have
        been lifted in the same transaction.
        """
        hold = unsaved.hold
        once = IdempotentCall(caller=FOREWARN, key=hold.id, method="", path="", body=b"")
        why = self._answering.answer(tx, once, lambda: self._kept(tx, unsaved)).body.decode()
        if why:
            return None if unsaved.released_by is not None else RefusedHold(hold=hold, why=why)
        if unsaved.released_by is not None:
            self._release(tx, hold, by=unsaved.released_by)
        return None

    def _kept(self, tx: Transaction, unsaved: UnsavedHold) -> IdempotentResponse:
        """Keep a hold; the body of the answer says why it cannot be kept, or nothing."""
        hold = unsaved.hold
        try:
            with tx.savepoint() as own:  # if the hold is refused, its call has no answer saved
                if unsaved.call is not None and unsaved.answered is not None:
                    answered = unsaved.answered
                    self._answering.answer(own, unsaved.call, lambda: answered)
                self._hosts.keep(own, hold, late=True)
        except (Conflict, NotFound) as error:
            log.warning("the hold of %s by %s is not kept: %s", holds.reach(hold), hold.by, error)
            with self._saving(tx) as draft:
                holds.refuse(draft, hold, str(error))
            return IdempotentResponse(status=409, body=str(error).encode())
        return IdempotentResponse(status=0, body=b"")

    def _release(self, tx: Transaction, hold: Hold, *, by: str) -> None:
        try:
            with tx.savepoint() as own:
                self._hosts.release(own, hold.id, by=by)
        except (Conflict, NotFound) as error:
            log.warning("the hold of %s by %s is not lifted: %s", holds.reach(hold), hold.by, error)
