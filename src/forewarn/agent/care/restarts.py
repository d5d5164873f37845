"""Check whether the machine has restarted for an event, so that it can come back before the event ends.

A restart counts only if it came after the event started. The journal has the boot in which the restart was
still to come; a document that lists the event as Started in a later boot shows that it is done.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from forewarn.agent.journal.entries import Entry, Restarted, RestartExpected, key
from forewarn.agent.journal.tracked_events import TrackedEvent
from forewarn.agent.setup.handler import RESTARTING
from forewarn.core.words import EventStatus
from forewarn.sdk.documents import Event


def boot_entry(
    tracked: TrackedEvent,
    event: Event,
    *,
    boot: str | None,
    up_seconds: float | None,
    server_now: Callable[[], datetime],
    now: datetime,
) -> Entry | None:
    """Return what to write down about the boot in which a document lists an event.

    It is written before the change of the event itself: an agent that is killed between the two decides the
    same again.
    """
    if boot is None or event.type not in RESTARTING:
        return None
    if tracked.restarted is not None or tracked.boot == boot:
        return None
    if tracked.boot is not None and event.status == EventStatus.STARTED:
        booted = None if up_seconds is None else server_now() - timedelta(seconds=up_seconds)
        if _began_before(tracked, booted):
            return Restarted(event=key(event), boot=boot, at=now)
    return RestartExpected(event=key(event), boot=boot)


def _began_before(tracked: TrackedEvent, booted: datetime | None) -> bool:
    """Check whether the event had started when the machine booted, by what earlier boots have seen of it.

    An event starts early only if it is approved. A crash before the start is no restart of the event.
    """
    if tracked.event.status == EventStatus.STARTED or tracked.approved is not None:
        return True
    not_before = tracked.event.not_before
    return booted is not None and not_before is not None and not_before <= booted
