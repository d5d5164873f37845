"""The live view of a fleet, drawn to fit a terminal of any size.

Holds, rollouts and events come first. Hosts follow, busy ones first, then machines by group and update
domain. Machines are named if there is room, otherwise counted. Machines that do not run are always named.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.live.change_stream import LinkState
from forewarn.cli.live.fleet_copy import FleetCopy
from forewarn.cli.live.watch_lines import (
    GAP,
    MOST_LINES,
    Drawn,
    drawn_hold,
    drawn_stuck,
    event_lines,
    rollout_lines,
)
from forewarn.cli.live.watch_tables import (
    LEGEND,
    UNREACHABLE,
    MachineCounts,
    count_machines,
    drawn_hosts,
    groups_of,
)
from forewarn.cli.tables import clip, fold_line
from forewarn.cli.views.rollout_progress import progress_of
from forewarn.core.basic_types import HostState

# Many stuck orders, holds or rollouts must leave room for the rest.
MOST_STUCK_LINES, MOST_HOLD_LINES, MOST_ROLLOUTS = 3, 3, 4
# A screen with fewer lines gives the parts above the events one line each.
LOW = 20
# Separates counts.
APART = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSize:
    """The size of a screen in characters; without a height it is unbounded."""

    width: int
    height: int | None = None


class WatchView:
    """Draw a copy of the fleet; cache the machines until the copy changes."""

    def __init__(self, copy: FleetCopy) -> None:
        self._copy = copy
        self._drawn_for: tuple[int, int] | None = None
        self._machines: list[Drawn] = []
        self._carried: MachineCounts = {}

    def frame(self, size: ScreenSize, *, link: LinkState, trouble: str = "") -> list[Text]:
        """Draw all lines."""
        copy, width = self._copy, size.width
        now = copy.time.estimate()
        # If the whole fleet is simulated, a screen says so once.
        marks = not _all_simulated(copy) or width >= terminal.UNBOUNDED
        low = size.height is not None and size.height < LOW
        summary = _summary(copy) if link is not LinkState.LOST else [Text(trouble, style="red")]
        stuck = [drawn_stuck(each, width) for each in copy.orders if each.stuck]
        holds = [drawn_hold(each, now, width) for each in copy.holds or ()]
        top = [
            _header(copy, link, width),
            *([Text(f"The server is not ready: {copy.trouble}", style="red")] if copy.trouble else []),
            *_joined(summary, terminal.UNBOUNDED if low else width),
            *_shown(stuck, 1 if low else MOST_STUCK_LINES, "stuck order"),
            *_shown(holds, 1 if low else MOST_HOLD_LINES, "hold"),
            *_rollouts(copy, width, marks=marks),
            Text(),
        ]
        none = "No events are announced." if copy.watched.all else "No events of the watched machines."
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
            self._carried = count_machines(self._copy)
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
    """Put a blank line between two parts that are not empty."""
    drawn: list[Text] = []
    for part in parts:
        drawn += [Text(), *part] if drawn and part else part
    return drawn


def _shares(room: int, wanted: list[int]) -> list[int]:
    """Divide the room evenly; parts that need less leave the rest to the others."""
    shares = [0] * len(wanted)
    by_need = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(by_need):
        shares[place] = min(wanted[place], max(room, 0) // (len(wanted) - done))
        room -= shares[place]
    return shares


def _shown(things: list[Drawn], room: int, what: str) -> list[Text]:
    """Show each thing in full if that fits; otherwise shorten from the last, and count the rest."""
    over = sum(len(full) for full, _ in things) - room
    lines: list[list[Text]] = [full for full, _ in things]
    # The most important things stand first, and are shortened last.
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
    progress = (progress_of(each, orders, lost) for each in every[:MOST_ROLLOUTS])
    lines = [line for each in progress for line in rollout_lines(each, width, marks=marks)]
    hidden = len(every) - MOST_ROLLOUTS
    return [*lines, _more(hidden, "rollout")] if hidden > 0 else lines


def _header(copy: FleetCopy, link: LinkState, width: int) -> Text:
    left = Text.assemble(("forewarn", "bold"), GAP, copy.client.url.split("://")[-1], GAP)
    left.append(formatting.utc(copy.time.estimate()))
    if copy.time.kind != "system":
        left.append(f" ({copy.time.kind})")
    style = {LinkState.LIVE: "green", LinkState.POLLING: "green", LinkState.LOST: "bold red"}.get(
        link, "yellow"
    )
    right = Text(f"{link.value}", style=style)
    if width >= terminal.UNBOUNDED:
        return left.append(GAP).append_text(right)
    space = width - left.cell_len - right.cell_len
    if space < len(GAP):
        left.truncate(max(width - right.cell_len - len(GAP), 0), overflow="ellipsis")
        space = width - left.cell_len - right.cell_len
    return left.append(" " * max(space, 1)).append_text(right)


def _summary(copy: FleetCopy) -> list[Text]:
    """Count machines, hosts and events."""
    parts = [Text(_states("machine", (machine.state for machine in copy.machines.values())), style="dim")]
    if copy.hosts is not None:
        parts.append(Text(_states("host", _host_states(copy, copy.hosts)), style="dim"))
    parts.append(Text(formatting.counted(len(copy.events), "event"), style="dim"))
    if _all_simulated(copy):
        parts.append(Text(formatting.SIMULATED_MARK, style="yellow"))
    return parts


def _joined(parts: list[Text], width: int) -> list[Text]:
    """Put parts beside one another, on as few lines as possible."""
    lines = parts[:1]
    for part in parts[1:]:
        beside = Text.assemble(lines[-1], APART, part)
        lines = [*lines[:-1], beside] if beside.cell_len <= width else [*lines, part]
    return [line for each in lines for line in fold_line(each, width, hanging=len(GAP), most=MOST_LINES)]


def _all_simulated(copy: FleetCopy) -> bool:
    """Return whether all hosts are simulated."""
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
