"""What goes on, a line for each thing: holds, rollouts, events with countdowns."""

from collections.abc import Sequence
from datetime import datetime

from rich.text import Text

from forewarn.cli import formatting, terminal
from forewarn.core.model.rollout import WaveState
from forewarn.core.words import EventStatus
from forewarn.wire.answers.event_answers import EventAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer
from forewarn.wire.answers.service_answers import HoldAnswer

GAP = "  "
BAR = 10


def hold_line(hold: HoldAnswer, now: datetime) -> Text:
    """Draw a hold."""
    since = formatting.countdown(hold.at, now)
    said = f"{GAP}{hold.reach}: {hold.reason} ({hold.by}, {since})"
    return Text.assemble(("HELD", "bold yellow"), said)


def rollout_line(rollout: RolloutAnswer, *, brief: bool = False) -> Text:
    """Draw a rollout in one line: how far it is and, if not brief, what it does now or waits for."""
    waves = rollout.waves
    done = sum(wave.state is WaveState.DONE for wave in waves)
    filled = round(BAR * done / len(waves)) if waves else BAR
    state = formatting.rollout_state(rollout)
    line = Text.assemble(
        f"rollout {terminal.short(rollout.id)} {rollout.action}{GAP}",
        (state, terminal.STYLES.get(state, "")),
        f"{GAP}{'█' * filled}{'░' * (BAR - filled)} {done} of {len(waves)} waves",
    )
    if brief:
        return line
    current = [wave for wave in waves if wave.state not in (WaveState.PLANNED, WaveState.DONE)]
    for wave in current:
        line.append(f"{GAP}{few(wave.hosts)} {wave.state}")
    if state in ("paused", "aborting") and rollout.why:
        line.append(f"{GAP}{rollout.why}")
    elif rollout.waiting and not current:
        first = rollout.waiting[0]
        line.append(f"{GAP}{first.what}: {terminal.shorten_ids(first.reason)}")
    return line


def event_lines(events: Sequence[EventAnswer], now: datetime) -> list[Text]:
    """Draw events, a line each: those that have started, then by when they may."""
    if not events:
        return [Text("No events: nothing is announced.", style="dim")]
    ordered = sorted(events, key=lambda event: (event.status is not EventStatus.STARTED, event.not_before))
    rows = [_event(event, now) for event in ordered]
    widths = [max(row[place].cell_len for row in rows) for place in range(len(rows[0]))]
    return [_row(row, widths) for row in rows]


def _event(event: EventAnswer, now: datetime) -> list[Text]:
    approved = event.status is EventStatus.SCHEDULED and event.approved
    status = "approved" if approved else event.status
    where = f"{event.group} UD {event.update_domain}" if event.group else ""
    return [
        Text(terminal.short(event.id)),
        Text(event.type),
        Text(status, style="green" if approved else terminal.STYLES.get(status, "")),
        Text(formatting.starts(event, now), style="bold"),
        Text(where),
        Text(few(event.resources, most=5)),
    ]


def _row(cells: list[Text], widths: list[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell).append(" " * (width - cell.cell_len) + GAP)
    line.rstrip()
    return line


def few(names: Sequence[str], most: int = 3) -> str:
    """Name the first of many, and count the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
