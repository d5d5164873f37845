"""Follow a rollout until it ends or pauses: a screen at a terminal, lines elsewhere."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from forewarn.cli import formatting, terminal
from forewarn.cli.live.change_stream import ChangeStream, LinkState, Refresher
from forewarn.cli.live.fleet_copy import ReasonExpiry, ServiceTime
from forewarn.cli.session import Session
from forewarn.cli.views.rollout_progress import RolloutProgress, read_progress
from forewarn.client.calls import OperatorClient
from forewarn.client.replies import RequestRefused
from forewarn.core.model.rollout import RolloutState, WaveState
from forewarn.wire.answers.event_answers import ListedEventAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer, WaveAnswer

if TYPE_CHECKING:
    from rich.text import Text

REDRAWN_EVERY = 1.0
# The waves that are drawn around the current one; the others are counted.
WAVES_SHOWN = 6
MOST_REASONS = 4
# The named hosts of a wave; more hosts are drawn as marks.
MOST_NAMES = 4


def follow(session: Session, id_: str) -> None:
    """Show a rollout until it is done; raise RequestRefused if it stops before."""
    try:
        with session.client.keeping_connection() as client, ChangeStream(session.client) as changes:
            followed = _FollowedRollout(client, id_)
            current = Refresher(
                changes, load=followed.read, take=lambda _: followed.read(), on_idle=followed.on_idle
            )
            if session.json:
                _print_lines(
                    followed,
                    current,
                    lambda: [json.dumps(followed.reply.json["rollout"], ensure_ascii=False)],
                )
            elif terminal.is_terminal():
                _draw(followed, current)
            else:
                _print_lines(followed, current, followed.facts)
    except KeyboardInterrupt:
        _show_detached(session, id_)
        return
    _end(session, followed.rollout)


class _FollowedRollout:
    """A rollout and the events of its current waves."""

    def __init__(self, client: OperatorClient, id_: str) -> None:
        self._client = client
        self._id = id_
        self._reasons = ReasonExpiry()
        self._progress: RolloutProgress | None = None
        self.read()

    @property
    def moving(self) -> bool:
        """Whether the rollout is neither over nor paused."""
        return self.rollout.ended_at is None and formatting.rollout_state(self.rollout) != "paused"

    @property
    def now(self) -> datetime:
        """The service time."""
        return self.time.estimate()

    def read(self) -> None:
        """Read the rollout."""
        self.time = ServiceTime.read(self._client)
        self.reply = self._client.get(f"/v1/rollouts/{self._id}", RolloutAnswer)
        self.rollout = self.reply.value
        orders = {order for wave in self._under_way() for order in wave.orders}
        every = self._client.all(ListedEventAnswer).value.items if orders else ()
        self.events = [event for event in every if event.order in orders]
        self._progress = None

    @property
    def progress(self) -> RolloutProgress:
        """The progress of the hosts, read on first use."""
        if self._progress is None:
            self._progress = read_progress(self._client, self.rollout)
        return self._progress

    def on_idle(self) -> None:
        """Read the parts that change without a record."""
        if self.time.is_stale:
            self.time = ServiceTime.read(self._client)
        if self._reasons.is_due([self.rollout.waiting_until], now=self.now):
            self.read()

    def facts(self) -> list[str]:
        """Return the current state as lines; changed lines are printed again."""
        rollout = self.rollout
        announced = [
            f"{event.type} of {formatting.listing(event.resources)}: {_status(event)}"
            for event in self.events
        ]
        why = f": {rollout.why}" if rollout.why else ""
        # Reasons matter only while no wave is under way.
        stuck = [] if self._under_way() else reasons(rollout)
        state = f"rollout {rollout.id}: {formatting.rollout_state(rollout)}{why}"
        lines = [*started_waves(rollout), *announced, *stuck]
        return [state, *lines] if self.moving else [*lines, state]

    def _under_way(self) -> list[WaveAnswer]:
        return [wave for wave in self.rollout.waves if wave.state not in (WaveState.PLANNED, WaveState.DONE)]


def started_waves(rollout: RolloutAnswer) -> list[str]:
    """Return a line for each wave that has started."""
    return [
        f"wave {number} of {len(rollout.waves)} ({formatting.listing(wave.hosts)}): {wave.state}"
        for number, wave in enumerate(rollout.waves, start=1)
        if wave.state is not WaveState.PLANNED
    ]


def reasons(rollout: RolloutAnswer, most: int = MOST_REASONS) -> list[str]:
    """Return the reasons why a rollout waits, each once and at most `most`."""
    every = list(dict.fromkeys(f"{each.what}: {terminal.readable(each.reason)}" for each in rollout.waiting))
    more = [f"… and {len(every) - most} more"] if len(every) > most else []
    return [*every[:most], *more]


def _status(event: ListedEventAnswer) -> str:
    if event.started_at is not None:
        return f"started at {formatting.utc(event.started_at)}"
    return f"not before {formatting.utc(event.not_before)}" + (", approved" if event.approved else "")


def _print_lines(followed: _FollowedRollout, current: Refresher, lines: Callable[[], list[str]]) -> None:
    """Print the lines that have changed."""
    shown: set[str] = set()
    while True:
        for line in lines():
            if line not in shown:
                terminal.echo(line)
        shown = set(lines())
        if not followed.moving:
            return
        current.wait(REDRAWN_EVERY)
        current.report_outages()


def _draw(followed: _FollowedRollout, current: Refresher) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from forewarn.cli.tables import clip

    screen = Console(highlight=False)
    with Live(console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            lines = [clip(line, screen.width) for line in _drawn(followed, current, screen.width)]
            live.update(Text("\n", no_wrap=True, end="").join(lines), refresh=True)
            if not followed.moving:
                return
            current.wait(REDRAWN_EVERY)


def _drawn(followed: _FollowedRollout, current: Refresher, width: int) -> "list[Text]":
    from rich.text import Text

    from forewarn.cli.live.watch_lines import event_lines, rollout_line

    rollout = followed.rollout
    lines = [rollout_line(rollout)]
    if current.link is LinkState.LOST:
        lines.append(Text(f"reconnecting: {current.trouble}", style="red"))
    lines += _waves(followed.progress)
    lines.append(Text(f"  hosts  {followed.progress.counts()}"))
    lines += [
        Text(f"  {host} is lost: report it as failed, or wait", style="bold red")
        for host in followed.progress.lost()
    ]
    if followed.events:
        lines += [Text(), *event_lines(followed.events, followed.now, width=width)]
    waiting = reasons(rollout) if followed.moving else []
    if waiting:
        lines += [Text(), Text("Waiting for:"), *(Text(f"  {reason}", style="dim") for reason in waiting)]
    return lines


def _waves(progress: RolloutProgress) -> "list[Text]":
    """Draw the waves around the current one, and count the others."""
    from rich.text import Text

    waves = progress.rollout.waves
    done = sum(wave.state is WaveState.DONE for wave in waves)
    first = max(0, min(done - 1, len(waves) - WAVES_SHOWN))
    width = max((len(wave.state) for wave in waves), default=0)
    lines = [Text(f"  … {formatting.counted(first, 'wave')} before", style="dim")] if first else []
    for number, wave in enumerate(waves[first : first + WAVES_SHOWN], start=first + 1):
        state, style = wave.state, terminal.STYLES.get(wave.state, "")
        ended = f"   {formatting.utc(wave.ended_at)}" if wave.ended_at else ""
        hosts = ", ".join(wave.hosts) if len(wave.hosts) <= MOST_NAMES else progress.strip(wave)
        lines.append(Text.assemble(f"  {number:>4}  ", (f"{state:{width}}", style), f"  {hosts}{ended}"))
    after = len(waves) - first - WAVES_SHOWN
    if after > 0:
        lines.append(Text(f"  … {formatting.counted(after, 'wave')} after", style="dim"))
    return lines


def _show_detached(session: Session, id_: str) -> None:
    short = terminal.short(id_)
    terminal.echo(f"\nRollout {short} continues.")
    commands = {"Follow": f"rollout show {short} --follow", "Pause": f"rollout pause {short}"}
    terminal.echo_steps({label: session.command(words) for label, words in commands.items()})


def _end(session: Session, rollout: RolloutAnswer) -> None:
    if rollout.state is RolloutState.DONE:
        return
    short = terminal.short(rollout.id)
    text = f"rollout {short} is {rollout.state}" + (f": {rollout.why}" if rollout.why else "")
    text += f"\n{formatting.rollout_progress(rollout)}."
    if rollout.state is RolloutState.PAUSED:
        text += (
            f"\nResume with `{session.command(f'rollout resume {short}')}`, "
            f"or abort with `{session.command(f'rollout abort {short}')}`."
        )
    raise RequestRefused(text)
