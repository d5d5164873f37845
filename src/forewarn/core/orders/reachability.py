"""Whether drivers reach their hosts: a host that cannot be reached gets no machines until it can be."""

from forewarn.core.copies import replace
from forewarn.core.draft import Draft
from forewarn.core.moments import format_span_briefly
from forewarn.core.words import FOREWARN, HostName, Kind


def note_unreachable(draft: Draft, host: HostName, *, why: str) -> None:
    """Note that the driver of a host cannot reach it; nothing if that is known."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is not None:
        return
    draft.put_host(replace(known, unreachable_since=draft.now))
    draft.record(Kind.HOST_UNREACHABLE, known, by=FOREWARN, reason=why)


def note_reachable(draft: Draft, host: HostName, *, why: str = "") -> None:
    """Note that a host can be used again; nothing if that is known. What waits for it is looked at."""
    known = draft.hosts.get(host)
    if known is None or known.unreachable_since is None:
        return
    away = format_span_briefly((draft.now - known.unreachable_since).total_seconds())
    draft.put_host(replace(known, unreachable_since=None))
    draft.record(Kind.HOST_REACHABLE, known, by=FOREWARN, reason=why or f"after {away}")
