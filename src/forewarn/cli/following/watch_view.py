"""The live view of a fleet, drawn to fit a terminal of any size.

What goes on comes first: holds, rollouts, events. Hosts follow, those to which something is done before the
others, then machines by group and update domain, by name where there is room and counted where there is not;
machines that do not run are named all the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.following.change_stream import LinkState
from forewarn.cli.following.fleet_copy import FleetCopy
from forewarn.cli.following.watch_lines import (
    GAP,
    MOST_LINES,
    Drawn,
    drawn_hold,
    drawn_stuck,
    event_lines,
    rollout_lines,
)
from forewarn.cli.following.watch_tables import (
    LEGEND,
    UNREACHABLE,
    Carried,
    count_carried,
    drawn_hosts,
    groups_of,
)
from forewarn.cli.tables import clip, fold
from forewarn.cli.views.rollout_night import night_of
from forewarn.core.basic_types import HostState

# Stuck orders, holds and rollouts are few; where they are not, the view must leave room for the rest.
MOST_STUCK_LINES, MOST_HOLD_LINES, MOST_ROLLOUTS = 3, 3, 4
# On a screen of fewer lines what stands above events, hosts and machines has a line each.
LOW = 20
# Between what is counted.
APART = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSize:
    """The room there is, in characters; no height: as much as it takes."""

    width: int
    height: int | None = None


class WatchView:
    """Draws a copy of the fleet; machines are drawn and counted anew only when something has changed."""

    def __init__(self, copy: FleetCopy) -> None:
        self._copy = copy
        self._drawn_for: tuple[int, int] | None = None
        self._machines: list[Drawn] = []
        self._carried: Carried = {}

    def frame(self, size: ScreenSize, *, link: LinkState, trouble: str = "") -> list[Text]:
        """Draw everything, a line each."""
        copy, width = self._copy, size.width
        now = copy.time.at_present()
        # Where nothing is really done anywhere, a screen says that once.
        marks = not _all_simulated(copy) or width >= terminal.UNBOUNDED
        low = size.height is not None and size.height < LOW
        said = _summary(copy) if link is not LinkState.LOST else [Text(trouble, style="red")]
        stuck = [drawn_stuck(each, width) for each in copy.orders if each.stuck]
        holds = [drawn_hold(each, now, width) for each in copy.holds or ()]
        top = [
            _header(copy, link, width),
            *([Text(f"The server is not ready: {copy.trouble}", style="red")] if copy.trouble else []),
            *(_joined(said, terminal.UNBOUNDED) if low else _joined(said, width)),
            *_shown(stuck, 1 if low else MOST_STUCK_LINES, "stuck order"),
            *_shown(holds, 1 if low else MOST_HOLD_LINES, "hold"),
            *_rollouts(copy, width, marks=marks),
            Text(),
        ]
        none = "No events: nothing is announced." if copy.watched.all else "No events of what is watched."
        lines = event_lines(copy.events, now, width=width, none=none, marks=marks)
        events: list[Drawn] = [([line], line) for line in lines]
        machines = self._drawn_groups(width)
        hosts = drawn_hosts(copy, self._carried, now, width=width, marks=marks)
        if size.height is None:
            parts = ([line for full, _ in part for line in full] for part in (events, hosts, machines))
            drawn = [*top, *_sections(*parts), Text(), _legend()]
        else:
            drawn = _fitted(top, events, hosts, machines, size.height)
        return [clip(line, width) for line in drawn]

    def _drawn_groups(self, width: int) -> list[Drawn]:
        if self._drawn_for != (self._copy.version, width):
            self._machines = groups_of(self._copy, width)
            self._carried = count_carried(self._copy)
            self._drawn_for = (self._copy.version, width)
        return self._machines


def _fitted(
    top: list[Text], events: list[Drawn], hosts: list[Drawn], machines: list[Drawn], height: int
) -> list[Text]:
    parts = {"event": events, "host": hosts, "group": machines}
    room = height - len(top) - (2 if hosts else 1)  # a line between two parts
    shares = _shares(room, [sum(len(full) for full, _ in part) for part in parts.values()])
    shown = (_shown(part, share, what) for (what, part), share in zip(parts.items(), shares, strict=True))
    drawn = [*top, *_sections(*shown)]
    if len(drawn) < height - 1:
        drawn += [Text(), _legend()]
    return drawn[:height]


def _sections(*parts: list[Text]) -> list[Text]:
    """Put a blank line between two parts that have something to show."""
    drawn: list[Text] = []
    for part in parts:
        drawn += [Text(), *part] if drawn and part else part
    return drawn


def _shares(room: int, wanted: list[int]) -> list[int]:
    """Divide the room evenly, and what one does not need among the others."""
    shares = [0] * len(wanted)
    by_need = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(by_need):
        shares[place] = min(wanted[place], max(room, 0) // (len(wanted) - done))
        room -= shares[place]
    return shares


def _shown(things: list[Drawn], room: int, what: str) -> list[Text]:
    """Give each its lines if they fit, or as many of the first as possible, and one to the rest."""
    over = sum(len(full) for full, _ in things) - room
    lines: list[list[Text]] = [full for full, _ in things]
    # From the last: what needs attention stands first, and is the last to be shortened.
    for place in reversed(range(len(things))):
        if over <= 0:
            break
        full, brief = things[place]
        lines[place] = [brief]
        over -= len(full) - 1
    if over <= 0:
        return [line for each in lines for line in each]
    most = max(room - 1, 0)
    return [*(brief for _, brief in things[:most]), _more(len(things) - most, what)]


def _more(hidden: int, what: str) -> Text:
    return Text(f"… and {formatting.counted(hidden, f'more {what}')}", style="dim")


def _rollouts(copy: FleetCopy, width: int, *, marks: bool) -> list[Text]:
    every = copy.rollouts or []
    orders = {order.id: order for order in copy.orders}
    lost = {name for name, state in (copy.hosts or {}).items() if state is HostState.LOST}
    nights = (night_of(each, orders, lost) for each in every[:MOST_ROLLOUTS])
    lines = [line for night in nights for line in rollout_lines(night, width, marks=marks)]
    hidden = len(every) - MOST_ROLLOUTS
    return [*lines, _more(hidden, "rollout")] if hidden > 0 else lines


def _header(copy: FleetCopy, link: LinkState, width: int) -> Text:
    left = Text.assemble(("forewarn", "bold"), GAP, copy.client.url.split("://")[-1], GAP)
    left.append(formatting.utc(copy.time.at_present()))
    if copy.time.kind != "system":
        left.append(f" ({copy.time.kind})")
    style = {LinkState.LIVE: "green", LinkState.POLLING: "green", LinkState.LOST: "bold red"}.get(
        link, "yellow"
    )
    right = Text(f"{link.value}", style=style)
    if width > terminal.UNBOUNDED - 1:
        return left.append(GAP).append_text(right)
    space = width - left.cell_len - right.cell_len
    if space < len(GAP):
        left.truncate(max(width - right.cell_len - len(GAP), 0), overflow="ellipsis")
        space = width - left.cell_len - right.cell_len
    return left.append(" " * max(space, 1)).append_text(right)


def _summary(copy: FleetCopy) -> list[Text]:
    """Count what there is."""
    parts = [Text(_states("machine", (machine.state for machine in copy.machines.values())), style="dim")]
    if copy.hosts is not None:
        parts.append(Text(_states("host", _host_states(copy, copy.hosts)), style="dim"))
    parts.append(Text(formatting.counted(len(copy.events), "event"), style="dim"))
    if _all_simulated(copy):
        parts.append(Text(formatting.SIMULATED_MARK, style="yellow"))
    return parts


def _joined(parts: list[Text], width: int) -> list[Text]:
    """Put parts beside one another, on one line or, where that is too narrow, on several."""
    lines = parts[:1]
    for part in parts[1:]:
        beside = Text.assemble(lines[-1], APART, part)
        lines = [*lines[:-1], beside] if beside.cell_len <= width else [*lines, part]
    return [line for each in lines for line in fold(each, width, hanging=len(GAP), most=MOST_LINES)]


def _all_simulated(copy: FleetCopy) -> bool:
    """Return whether nothing is really done in the fleet; if that is so on some hosts, those are marked."""
    return bool(copy.simulated) and copy.simulated == (copy.hosts or {}).keys()


def _host_states(copy: FleetCopy, hosts: Mapping[str, HostState]) -> Iterable[str]:
    for name, state in hosts.items():
        yield UNREACHABLE if state is HostState.OK and name in copy.unreachable else state


def _states(what: str, states: Iterable[str]) -> str:
    counts = Counter(states)
    each = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return formatting.counted(counts.total(), what) + (f" ({each})" if each else "")


def _legend() -> Text:
    return Text(LEGEND, style="dim")
