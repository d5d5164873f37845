"""`forewarn watch`: the fleet as it lives."""

import json
import shutil
from collections.abc import Callable
from typing import Annotated, Any

import typer

from forewarn.cli import terminal
from forewarn.cli.completion import names
from forewarn.cli.following.change_stream import Changes, Link, Outages, Record, UpToDate
from forewarn.cli.following.fleet_copy import Mirror, Watched
from forewarn.cli.session import Session, with_session
from forewarn.cli.views import history_lines

# Countdowns are in seconds.
REDRAWN_EVERY = 1.0

Group = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", help="Only this group.", autocompletion=names("groups")),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host", metavar="HOST", help="Only what this host carries.", autocompletion=names("hosts")
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Print what is now, and end.")]


@with_session
def watch(session: Session, group: Group = None, host: Host = None, once: Once = False) -> None:
    """Watch machines, events with countdowns, holds and rollouts as they change; Ctrl-C ends it."""
    watched = Watched(project=session.project, group=group, host=host)
    with session.client.kept_open() as client:
        mirror = Mirror(client, watched)
        mirror.check()
        mirror.load()
        if once:
            session.answer(_as_json(mirror), lambda: _print(mirror))
            return
        try:
            _follow(session, mirror)
        except KeyboardInterrupt:
            return


def _follow(session: Session, mirror: Mirror) -> None:
    with Changes(session.client, project=session.project) as changes:
        current = UpToDate(changes, load=mirror.load, take=mirror.take, rest=lambda: _mind_the_time(mirror))
        if session.json:
            _tell(mirror, current, lambda record: json.dumps(record, ensure_ascii=False))
        elif terminal.is_terminal():
            _draw(mirror, current)
        else:
            _tell(mirror, current, history_lines.line)


def _tell(mirror: Mirror, current: UpToDate, written: Callable[[Record], str]) -> None:
    """Print a line for each change."""
    outages = Outages(current)
    while True:
        records = current.wait(REDRAWN_EVERY)
        outages.tell()
        for record in records:
            if mirror.concerns(record):
                terminal.say(written(record))


def _draw(mirror: Mirror, current: UpToDate) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from forewarn.cli.following.watch_view import Size, View

    screen, view = Console(highlight=False), View(mirror)
    with Live(console=screen, screen=True, auto_refresh=False) as live:
        while True:
            size = Size(width=screen.width, height=screen.height)
            lines = view.frame(size, link=current.link, trouble=current.trouble)
            live.update(Text("\n", no_wrap=True, end="").join(lines), refresh=True)
            current.wait(REDRAWN_EVERY)


def _mind_the_time(mirror: Mirror) -> None:
    if mirror.time is None or mirror.time.old:
        mirror.read_time()


def _print(mirror: Mirror) -> None:
    from rich.console import Console

    from forewarn.cli.following.watch_view import Size, View

    width = shutil.get_terminal_size().columns if terminal.is_terminal() else terminal.UNBOUNDED
    screen = Console(highlight=False, width=width)
    for line in View(mirror).frame(Size(width=width), link=Link.LIVE):
        screen.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=True)


def _as_json(mirror: Mirror) -> dict[str, Any]:
    now = mirror.time.at_present().isoformat() if mirror.time else None
    return {
        "now": now,
        "machines": list(mirror.machines.values()),
        "hosts": mirror.hosts,
        "events": mirror.events,
        "holds": mirror.holds,
        "rollouts": mirror.rollouts,
    }
