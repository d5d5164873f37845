"""The live view of a fleet, drawn to fit a terminal of any size.

What goes on comes first: holds, rollouts, events. Hosts follow, those to which something is done before the
others, then machines by group and update domain, by name where there is room and counted where there is not;
machines that do not run are named all the same.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.following.change_stream import LinkState
from forewarn.cli.following.fleet_copy import FleetCopy
from forewarn.cli.following.watch_hosts import Carried, count_carried, host_lines
from forewarn.cli.following.watch_lines import GAP, event_lines, hold_line, rollout_lines
from forewarn.cli.following.watch_machines import LEGEND, DrawnGroup, groups_of
from forewarn.cli.table_drawing import clip
from forewarn.cli.views.rollout_night import night_of
from forewarn.core.words import HostState

# Holds and rollouts are few; where they are not, the view must leave room for the rest.
MOST_HOLDS, MOST_ROLLOUTS = 3, 4


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
        self._machines: list[DrawnGroup] = []
        self._carried: Carried = {}

    def frame(self, size: ScreenSize, *, link: LinkState, trouble: str = "") -> list[Text]:
        """Draw everything, a line each."""
        copy = self._copy
        now = copy.time.at_present()
        top = [
            _header(copy, link, size.width),
            _summary(copy) if link is not LinkState.LOST else Text(trouble, style="red"),
            *_shortened([hold_line(each, now) for each in copy.holds or ()], MOST_HOLDS, "hold"),
            *_rollouts(copy, size.width),
            Text(),
        ]
        none = "No events: nothing is announced." if copy.watched.all else "No events of what is watched."
        events = event_lines(copy.events, now, width=size.width, none=none)
        machines = self._drawn_groups(size.width)
        hosts = host_lines(copy, self._carried, now)
        if size.height is None:
            groups = [line for full, _ in machines for line in full]
            drawn = [*top, *_sections(events, hosts, groups), Text(), _legend()]
        else:
            drawn = _fitted(top, events, hosts, machines, size.height)
        return [clip(line, size.width) for line in drawn]

    def _drawn_groups(self, width: int) -> "list[DrawnGroup]":
        if self._drawn_for != (self._copy.version, width):
            self._machines = groups_of(self._copy, width)
            self._carried = count_carried(self._copy)
            self._drawn_for = (self._copy.version, width)
        return self._machines


def _fitted(
    top: list[Text], events: list[Text], hosts: list[Text], machines: list[DrawnGroup], height: int
) -> list[Text]:
    groups = sum(len(full) for full, _ in machines)
    room = height - len(top) - (2 if hosts else 1)  # a line between two parts
    shares = _shares(room, [len(events), len(hosts), groups])
    shown = _sections(
        _shortened(events, shares[0], "event"),
        _shortened(hosts, shares[1], "host"),
        _groups(machines, shares[2]),
    )
    drawn = [*top, *shown]
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


def _groups(machines: list[DrawnGroup], room: int) -> list[Text]:
    """Give each group its lines if they fit, or as many of the first as possible, and one to the rest."""
    over = sum(len(full) for full, _ in machines) - room
    lines: list[list[Text]] = [full for full, _ in machines]
    # From the last: what needs attention stands first, and is the last to be shortened.
    for place in reversed(range(len(machines))):
        if over <= 0:
            break
        full, brief = machines[place]
        lines[place] = [brief]
        over -= len(full) - 1
    return _shortened([line for each in lines for line in each], room, "group")


def _shortened(lines: list[Text], room: int, what: str) -> list[Text]:
    if len(lines) <= room:
        return lines
    shown = max(room - 1, 0)
    return [*lines[:shown], _more(len(lines) - shown, what)]


def _more(hidden: int, what: str) -> Text:
    return Text(f"… and {formatting.counted(hidden, f'more {what}')}", style="dim")


def _rollouts(copy: FleetCopy, width: int) -> list[Text]:
    every = copy.rollouts or []
    orders = {order.id: order for order in copy.orders}
    lost = {name for name, state in (copy.hosts or {}).items() if state is HostState.LOST}
    nights = (night_of(each, orders, lost) for each in every[:MOST_ROLLOUTS])
    lines = [line for night in nights for line in rollout_lines(night, width)]
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


def _summary(copy: FleetCopy) -> Text:
    parts = [_states("machine", (machine.state for machine in copy.machines.values()))]
    if copy.hosts is not None:
        parts.append(_states("host", copy.hosts.values()))
    parts.append(formatting.counted(len(copy.events), "event"))
    return Text("   ".join(parts), style="dim").append(_simulated(copy), style="yellow")


def _simulated(copy: FleetCopy) -> str:
    """Mark a fleet in which nothing is really done; if that is so on some hosts, those are marked."""
    every = bool(copy.simulated) and copy.simulated == (copy.hosts or {}).keys()
    return f"   {formatting.SIMULATED_MARK}" if every else ""


def _states(what: str, states: Iterable[str]) -> str:
    counts = Counter(states)
    each = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return formatting.counted(counts.total(), what) + (f" ({each})" if each else "")


def _legend() -> Text:
    return Text(LEGEND, style="dim")
