"""Service time goes on from where a store has reached, in the kind of time that it lives in."""

import logging
from datetime import datetime, timedelta

from forewarn.clock import Clock, ManualClock, SystemClock
from forewarn.core.errors import Conflict
from forewarn.core.model.clock_slew import TimeKind, can_be_the_systems, kind_of
from forewarn.core.moments import format_offset
from forewarn.server.threads.batches import Batches
from forewarn.store.sql import Store

log = logging.getLogger(__name__)

# Less is how a manual clock begins: on the next whole second.
WORTH_TELLING = timedelta(seconds=1)


def begin(clock: Clock, store: Store, *, name: str, system: datetime) -> None:
    """Let a clock go on from the time that a store has reached, and keep in the store which kind it is.

    Conflict if it is the system's clock, and the store's time was turned and is ahead of it.
    """
    with store.read() as snapshot:
        reached, saved, slew = snapshot.time.reached(), snapshot.time.kind(), snapshot.time.slew()
    ahead = timedelta() if reached is None else reached - system
    kind = TimeKind.SYSTEM if isinstance(clock, SystemClock) else TimeKind.TURNED
    if kind is TimeKind.SYSTEM and not can_be_the_systems(kind_of(saved, ahead=ahead), ahead=ahead):
        raise Conflict(
            f"{name} lives in turned time, {format_offset(ahead)} the system's: "
            "--clock x1 (make run CLOCK=x1) goes on in turned time, "
            "another --database (FOREWARN_DATABASE=…) begins anew"
        )
    if reached is not None:
        # Since then service time was shown that is not saved, if the server was killed.
        shown = slew.to_service(system) if slew is not None and kind is TimeKind.SYSTEM else reached
        clock.start_from(max(reached, shown))
    if abs(clock.offset) >= WORTH_TELLING:
        log.warning("service time is %s the system's (clock %s)", format_offset(clock.offset), clock.kind)
    if saved is not kind:
        Batches(store).transact(lambda tx: tx.time.set_kind(kind))


def standing(store: Store) -> Clock:
    """Return a clock for what is done on a store that is not served: turned time does not go on by itself."""
    system = SystemClock()
    with store.read() as snapshot:
        reached, saved = snapshot.time.reached(), snapshot.time.kind()
    if reached is None:
        return system
    turned = kind_of(saved, ahead=reached - system.now()) is TimeKind.TURNED
    clock: Clock = ManualClock() if turned else system
    clock.start_from(reached)
    return clock
