"""When maintenance may be told of and started: notice before it, windows around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forewarn.core.errors import Invalid
from forewarn.core.model import Waiting
from forewarn.core.moments import stamp, whole_second
from forewarn.core.windows import Calendar, first_fit, last_fit
from forewarn.core.words import ProjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What binds the start of some work."""

    notice: timedelta = timedelta()
    work: timedelta = timedelta()  # how long it is expected to take
    calendars: Mapping[ProjectName, Calendar] = field(default_factory=dict)
    deadline: datetime | None = None  # from then on windows give way

    def start_from(self, soonest: datetime, *, now: datetime) -> datetime | None:
        """Find the first moment from the soonest on at which the work may start; None if there is none."""
        fit = first_fit(self._heeded(now).values(), after=soonest, work=self.work)
        # What is told at the deadline has as much notice as what is told now.
        late = None if self.deadline is None else max(self.deadline, now) + (soonest - now)
        return min((moment for moment in (fit, late) if moment is not None), default=None)

    def tell_at(self, now: datetime) -> datetime | None:
        """Find the first moment from now on at which guests may be told; None if there is none."""
        soonest = self.start_if_told(now)
        start = self.start_from(soonest, now=now)
        return None if start is None else now + (start - soonest)

    def start_if_told(self, now: datetime) -> datetime:
        """Say when what is told now starts at the latest moment that is promised."""
        return whole_second(now + self.notice)

    def latest(self, start: datetime, *, now: datetime) -> datetime | None:
        """Say up to when a start may be put off: the deadline, or the end of the window; None: for ever."""
        moments = (self.deadline, last_fit(self._heeded(now).values(), at=start, work=self.work))
        return min((moment for moment in moments if moment is not None), default=None)

    def outside(self, what: str, start: datetime, *, now: datetime) -> tuple[Waiting, ...]:
        """Say in whose windows work that started at a moment would not be over."""
        return tuple(
            Waiting(what=what, reason=f"outside the window of project {project}")
            for project, calendar in self._heeded(now).items()
            if first_fit([calendar], after=start, work=self.work) != start
        )

    def check(self, what: str, *, now: datetime) -> None:
        """Refuse work that no window will ever have room for."""
        if self.tell_at(now) is not None:
            return
        *most, last = sorted(self.calendars)
        lack = f"projects {', '.join(most)} and {last} have no window in common" if most else ""
        lack = lack or f"project {last} has no window"
        room = f"that leaves {self.work.total_seconds():g} s for the work"
        raise Invalid(f"{what}: {lack} {room}: give a deadline, or change the windows")

    def _heeded(self, now: datetime) -> Mapping[ProjectName, Calendar]:
        gone = self.deadline is not None and self.deadline <= now
        return {} if gone else self.calendars


def check_deadline(deadline: datetime | None, *, now: datetime) -> None:
    """Refuse a deadline that has passed: whoever gives one wants windows to be heeded until then."""
    if deadline is not None and deadline <= now:
        raise Invalid(f"deadline: expected a time to come, got {stamp(deadline)}")
