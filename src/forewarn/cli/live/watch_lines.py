"""Lines of the live view: holds, stuck orders, rollouts, and events with countdowns."""

import re
from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.cli.tables import fold_line
from forewarn.cli.views.rollout_progress import RolloutProgress
from forewarn.core.basic_types import EventStatus
from forewarn.core.model.rollout import WaveState
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.order_answers import OrderAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.answers.service_answers import HoldAnswer

Drawn = tuple[list[Text], Text]  # a thing in full, and as one line

GAP = "  "
# The lines of one thing; its `show` command has the rest.
MOST_LINES = 3
BAR = 10
# If current waves have more hosts, they are not named but counted by progress.
MOST_HOSTS = 6
# The most machines of an event that are named; `event show` has all.
MOST_NAMES = 5
_PARTS = re.compile(r"\d+|\D+")


def drawn_hold(hold: HoldAnswer, now: datetime, width: int) -> Drawn:
    """Draw a hold."""
    since = formatting.countdown(hold.at, now)
    head = f"HELD{GAP}"
    line = Text.assemble((head, "bold yellow"), f"{hold.reach}: {hold.reason} ({hold.by}, {since})")
    return fold_line(line, width, hanging=len(head), most=MOST_LINES), line


def drawn_stuck(order: OrderAnswer, width: int) -> Drawn:
    """Draw an order that waits for an operator."""
    head, subject = f"STUCK{GAP}", order.machine or order.host
    why = order.waiting[0]
    reason = "" if why.what == f"order {order.id}" else f"{why.what}: "
    line = Text.assemble(
        (head, "bold red"),
        f"{order.action} of {subject} (order {terminal.short(order.id)}): {reason}",
        terminal.readable(why.reason),
    )
    return fold_line(line, width, hanging=len(head), most=MOST_LINES), line


def rollout_line(rollout: RolloutAnswer, *, marks: bool = True) -> Text:
    """Draw the progress of a rollout and, with `marks`, how much of it is simulated."""
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


def rollout_lines(progress: RolloutProgress, width: int, *, marks: bool) -> list[Text]:
    """Draw the progress of a rollout, with its current work or reason to wait."""
    line = rollout_line(progress.rollout, marks=marks)
    if not (doing := _doing(progress)):
        return [line]
    beside = Text.assemble(line, GAP, doing)
    if beside.cell_len <= width:
        return [beside]
    return [line, *fold_line(Text(f"{GAP}{doing}"), width, hanging=2 * len(GAP), most=MOST_LINES - 1)]


def _doing(progress: RolloutProgress) -> str:
    rollout = progress.rollout
    current = [wave for wave in rollout.waves if wave.state not in (WaveState.PLANNED, WaveState.DONE)]
    large = sum(len(wave.hosts) for wave in current) > MOST_HOSTS
    doing = [progress.counts()] if large else [f"{few(wave.hosts)} {wave.state}" for wave in current]
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
    none: str = "No events are announced.",
    marks: bool = True,
) -> list[Text]:
    """Draw events, a line each, started ones first; with `marks`, mark simulated ones."""
    if not events:
        return [Text(none, style="dim")]
    ordered = sorted(events, key=lambda event: (event.status is not EventStatus.STARTED, event.not_before))
    least = max(len(few(event.resources, 1)) for event in ordered)
    cells = [_event(event, now, marks=marks) for event in ordered]
    heads = rows(cells)
    if _longest(heads) + len(GAP) + least > width:
        heads = rows([each[:-1] for each in cells])  # the list of groups below names it too
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
    """Name as many machines as fit."""
    fitting = (said for most in range(MOST_NAMES, 0, -1) if len(said := few(names, most)) <= room)
    return next(fitting, few(names, 1))


def rows(cells: Sequence[Sequence[Text]]) -> list[Text]:
    """Draw rows with aligned cells."""
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
    """Name the first `most`, and count the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
