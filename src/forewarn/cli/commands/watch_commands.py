"""`forewarn watch`: a live view of the fleet."""

import json
from collections.abc import Callable
from typing import Any

from forewarn.cli import terminal
from forewarn.cli.command_group import flag, option
from forewarn.cli.commands.history_commands import write_record
from forewarn.cli.live.change_stream import ChangeStream, LinkState, Record, Refresher
from forewarn.cli.live.fleet_copy import FleetCopy, WatchFilter
from forewarn.cli.session import Session, command

# Countdowns show seconds.
REDRAWN_EVERY = 1.0

GROUP = option("--group", "GROUP", "Only this group.")
HOST = option("--host", "HOST", "Only the machines of this host.")
ONCE = flag("--once", "Print the current state, and exit.")


@command(GROUP, HOST, ONCE)
def watch(session: Session, group: str | None, host: str | None, once: bool) -> None:
    """Watch hosts, machines, events, holds and rollouts live. Ctrl-C ends the view."""
    watched = WatchFilter(project=session.project, group=group, host=host)
    with session.client.keeping_connection() as client:
        copy = FleetCopy(client, watched)
        copy.check()
        copy.load()
        if once:
            session.print_answer(_as_json(copy), lambda: _print(copy))
            return
        try:
            _follow(session, copy)
        except KeyboardInterrupt:
            return


def _follow(session: Session, copy: FleetCopy) -> None:
    with ChangeStream(session.client, project=session.project) as changes:
        current = Refresher(
            changes,
            load=copy.load,
            take=lambda records: copy.take([record.value for record in records]),
            on_idle=copy.on_idle,
        )
        if session.json:
            _print_changes(copy, current, lambda record: json.dumps(record.json, ensure_ascii=False))
        elif terminal.is_terminal():
            _draw(copy, current)
        else:
            _print_changes(copy, current, lambda record: write_record(record.value))


def _print_changes(copy: FleetCopy, current: Refresher, written: Callable[[Record], str]) -> None:
    """Print a line for each change, and to stderr when the server becomes ready or not ready."""
    is_troubled = False
    while True:
        records = current.wait(REDRAWN_EVERY)
        current.report_outages()
        if bool(copy.trouble) is not is_troubled:
            is_troubled = not is_troubled
            terminal.print_error(
                f"the server is not ready: {copy.trouble}" if is_troubled else "the server is ready again"
            )
        for record in records:
            if copy.concerns(record.value):
                terminal.echo(written(record))


def _draw(copy: FleetCopy, current: Refresher) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from forewarn.cli.live.watch_view import ScreenSize, WatchView

    screen, view = Console(highlight=False), WatchView(copy)
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            size = ScreenSize(width=screen.width, height=screen.height)
            lines = view.frame(size, link=current.link, trouble=current.trouble)
            live.update(Text("\n", no_wrap=True, end="").join(lines), refresh=True)
            current.wait(REDRAWN_EVERY)


def _print(copy: FleetCopy) -> None:
    from rich.console import Console

    from forewarn.cli.live.watch_view import ScreenSize, WatchView

    width = terminal.width()
    screen = Console(highlight=False, width=width)
    for line in WatchView(copy).frame(ScreenSize(width=width), link=LinkState.LIVE):
        screen.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=True)


def _as_json(copy: FleetCopy) -> dict[str, Any]:
    from forewarn.wire.answers.coding import ANSWER_CODEC

    names = ("hosts", "unreachable", "events", "holds", "rollouts", "orders")
    shown = {"machines": list(copy.machines.values()), **{name: getattr(copy, name) for name in names}}
    return {
        "now": copy.time.estimate().isoformat(),
        "trouble": copy.trouble or None,
        **ANSWER_CODEC.write(shown),
    }
