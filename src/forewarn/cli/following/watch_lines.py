"""What goes on, a line for each thing: holds, rollouts, events with countdowns."""

import re
from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.tables import fold
from forewarn.cli.views.rollout_night import Night
from forewarn.core.basic_types import EventStatus
from forewarn.core.model.rollout import WaveState
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.answers.service_answers import HoldAnswer

Drawn = tuple[list[Text], Text]  # something in full, and as one line

GAP = "  "
# For each thing; what it says beyond that is told by the command that shows it.
MOST_LINES = 3
BAR = 10
# Of the waves under way; more are counted by how far they are.
MOST_HOSTS = 6
# Of an event's machines; `event show` has them all.
MOST_NAMES = 5
_PARTS = re.compile(r"\d+|\D+")


def drawn_hold(hold: HoldAnswer, now: datetime, width: int) -> Drawn:
    """Draw a hold."""
    since = formatting.countdown(hold.at, now)
    head = f"HELD{GAP}"
    line = Text.assemble((head, "bold yellow"), f"{hold.reach}: {hold.reason} ({hold.by}, {since})")
    return fold(line, width, hanging=len(head), most=MOST_LINES), line


def drawn_stuck(order: OrderAnswer, width: int) -> Drawn:
    """Draw an order that waits for a person."""
    head, subject = f"STUCK{GAP}", order.machine or order.host
    why = order.waiting[0]
    reason = "" if why.what == f"order {order.id}" else f"{why.what}: "
    line = Text.assemble(
        (head, "bold red"),
        f"{order.action} of {subject} (order {terminal.short(order.id)}): {reason}",
        terminal.readable(why.reason),
    )
    return fold(line, width, hanging=len(head), most=MOST_LINES), line


def rollout_line(rollout: RolloutAnswer, *, marks: bool = True) -> Text:
    """Draw how far a rollout is, and how much of it is simulated unless that goes without saying."""
    waves = rollout.waves
    done = sum(wave.state is WaveState.DONE for wave in waves)
    filled = round(BAR * done / len(waves)) if waves else BAR
    state = formatting.rollout_state(rollout)
    simulated = formatting.simulated_part(rollout) if marks else ""
    return Text.assemble(
        f"rollout {terminal.short(rollout.id)} {rollout.action}{GAP}",
        (state, terminal.STYLES.get(state, "")),
        (f", {simulated}" if simulated else "", "yellow"),
        f"{GAP}{'█' * filled}{'░' * (BAR - filled)} {done} of {formatting.counted(len(waves), 'wave')}",
    )


def rollout_lines(night: Night, width: int, *, marks: bool) -> list[Text]:
    """Draw how far a rollout is and what it does now or waits for, beside that or below it."""
    line = rollout_line(night.rollout, marks=marks)
    if not (doing := _doing(night)):
        return [line]
    beside = Text.assemble(line, GAP, doing)
    if beside.cell_len <= width:
        return [beside]
    return [line, *fold(Text(f"{GAP}{doing}"), width, hanging=2 * len(GAP), most=MOST_LINES - 1)]


def _doing(night: Night) -> str:
    rollout = night.rollout
    current = [wave for wave in rollout.waves if wave.state not in (WaveState.PLANNED, WaveState.DONE)]
    large = sum(len(wave.hosts) for wave in current) > MOST_HOSTS
    doing = [night.counts()] if large else [f"{few(wave.hosts)} {wave.state}" for wave in current]
    if formatting.rollout_state(rollout) in ("paused", "aborting") and rollout.why:
        doing.append(rollout.why)
    elif rollout.waiting and not current:
        first = rollout.waiting[0]
        doing.append(f"{first.what}: {terminal.readable(first.reason)}")
    return GAP.join(doing)


def event_lines(
    events: Sequence[ListedEventAnswer],
    now: datetime,
    *,
    width: int = terminal.UNBOUNDED,
    none: str = "No events: nothing is announced.",
    marks: bool = True,
) -> list[Text]:
    """Draw events, a line each: those that have started, then by when they may.

    Those that are simulated are marked, unless that goes without saying.
    """
    if not events:
        return [Text(none, style="dim")]
    ordered = sorted(events, key=lambda event: (event.status is not EventStatus.STARTED, event.not_before))
    least = max(len(few(event.resources, 1)) for event in ordered)
    cells = [_event(event, now, marks=marks) for event in ordered]
    heads = rows(cells)
    if _longest(heads) + len(GAP) + least > width:
        heads = rows([each[:-1] for each in cells])  # the group stands below, with its machines
    longest = _longest(heads)
    room = width - longest - len(GAP)
    return [
        Text.assemble(head, " " * (longest - head.cell_len), GAP, _named(event.resources, room))
        for head, event in zip(heads, ordered, strict=True)
    ]


def _longest(lines: Sequence[Text]) -> int:
    return max(line.cell_len for line in lines)


def _event(event: ListedEventAnswer, now: datetime, *, marks: bool) -> list[Text]:
    approved = event.status is EventStatus.SCHEDULED and event.approved
    status = "approved" if approved else event.status
    where = f"{event.group} UD {event.update_domain}" if event.group else ""
    return [
        Text(terminal.short(event.id)),
        Text(event.type),
        Text.assemble(
            (status, "green" if approved else terminal.STYLES.get(status, "")),
            (", simulated" if event.simulated and marks else "", "yellow"),
        ),
        Text(formatting.starts(event, now), style="bold"),
        Text(where),
    ]


def _named(names: Sequence[str], room: int) -> str:
    """Name as many as there is room for."""
    fitting = (said for most in range(MOST_NAMES, 0, -1) if len(said := few(names, most)) <= room)
    return next(fitting, few(names, 1))


def rows(cells: Sequence[Sequence[Text]]) -> list[Text]:
    """Draw rows, a line each, whose cells stand below one another."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    return [_row(row, widths) for row in cells]


def _row(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell.cell_len) + GAP)
    line.rstrip()
    return line


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort `web-2` before `web-10`."""
    parts = _PARTS.findall(name.casefold())
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def few(names: Sequence[str], most: int = 3) -> str:
    """Name the first of many, and count the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
