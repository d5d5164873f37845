"""How commands show rollouts: a row of a list, the waves of one, a plan with a timeline."""

from collections.abc import Iterable
from datetime import datetime

from forewarn.cli import formatting, terminal
from forewarn.cli.session import Session
from forewarn.cli.views.order_view import show_waiting
from forewarn.cli.views.rollout_progress import show_progress
from forewarn.client.replies import AnswerNotUnderstood
from forewarn.core.basic_types import EXTERNAL, SIMULATED, RolloutAction, ServiceMode
from forewarn.core.model.rollout import WaveState
from forewarn.core.time_formats import format_span_briefly
from forewarn.wire.answers.order_answers import WaitingAnswer
from forewarn.wire.answers.rollout_answers import RolloutAnswer, WaveAnswer
from forewarn.wire.texts import is_guid

NumberedWave = tuple[int, WaveAnswer]

LIST = terminal.ItemTable[RolloutAnswer](
    columns={
        "ROLLOUT": lambda rollout: terminal.short(rollout.id),
        "ACTION": lambda rollout: rollout.action,
        "STATE": lambda rollout: _state(rollout),
        "HOSTS": lambda rollout: f"{len(rollout.hosts_done)} of {len(rollout.hosts)} done",
        "WAVES": lambda rollout: _waves_done(rollout),
        "STARTED": lambda rollout: rollout.created_at,
        "BY": lambda rollout: rollout.by,
        "WHY": lambda rollout: rollout.why or rollout.reason,
    },
    wraps=("WHY",),
    spare=("BY", "STARTED"),
    empty="No rollouts.",
)
WAVES = terminal.ItemTable[NumberedWave](
    columns={
        "WAVE": lambda each: each[0],
        "STATE": lambda each: each[1].state,
        "HOSTS": lambda each: _hosts(each[1]),
        "ANNOUNCED": lambda each: _known_or_about(each[1].announced_at, each[1].announce_at),
        "STARTED": lambda each: _known_or_about(each[1].started_at, each[1].start_at),
        "ENDED": lambda each: _known_or_about(each[1].ended_at, each[1].end_at),
    },
    wraps=("HOSTS",),
    empty="No waves.",
)
WIDTH = 40
NOTICE, WORK = "·", "█"
IDLE = "no machines to treat"
# A terminal shows at most these names of a wave.
MOST_NAMES = 6
# A thousand hosts would fill the screen; --json shows all.
MOST_REASONS = 20
# The same limit for hosts that cannot be emptied, and for the machines that prevent it.
MOST_HOSTS, MOST_MACHINES = 10, 3


def _hosts(wave: WaveAnswer) -> str:
    """Name the hosts of a wave; a terminal gets the first and the last of many."""
    if len(wave.hosts) <= MOST_NAMES or not terminal.is_terminal():
        return ", ".join(wave.hosts)
    return f"{wave.hosts[0]}, {wave.hosts[1]} … {wave.hosts[-1]} ({len(wave.hosts)})"


def _state(rollout: RolloutAnswer) -> str:
    parts = [formatting.rollout_state(rollout), formatting.simulated_part(rollout)]
    return ", ".join(filter(None, parts))


def _driver(rollout: RolloutAnswer) -> str:
    """Name who does the work, unless the server does all of it."""
    if rollout.driver == SIMULATED:
        return formatting.SIMULATED_MARK
    if rollout.simulated_hosts:
        listed = formatting.listing(rollout.simulated_hosts)
        return f"{formatting.DONE_OUTSIDE}; on {listed} {formatting.SIMULATED_MARK}"
    return formatting.DONE_OUTSIDE if rollout.driver == EXTERNAL else ""


def _waves_done(rollout: RolloutAnswer) -> str:
    """Write how many waves are done; an aborted rollout knows only the started ones."""
    done = sum(wave.state is WaveState.DONE for wave in rollout.waves)
    stopped = formatting.rollout_state(rollout) in ("aborting", "aborted")
    return f"{done} done" if stopped else f"{done} of {len(rollout.waves)} done"


def show(session: Session, rollout: RolloutAnswer) -> None:
    """Show a rollout with its waves, the progress of its hosts, and what it waits for."""
    terminal.details(
        [
            ("rollout", rollout.id),
            ("action", _action(rollout)),
            ("state", _state(rollout)),
            ("hosts", formatting.rollout_progress(rollout)),
            ("waves", _waves_done(rollout)),
            *([("done by", _driver(rollout))] if _driver(rollout) else []),
            ("requested by", rollout.by),
            ("reason", rollout.reason),
            ("started", rollout.created_at),
            ("ended", rollout.ended_at),
            ("deadline", rollout.deadline),
            *([("together", rollout.together)] if rollout.together else []),
            ("health", _health(rollout)),
            ("canaries", _canaries(rollout)),
            ("failures", _failures(rollout)),
            ("skipped hosts", rollout.given_up),
            ("explanation", rollout.why),
            ("notice", formatting.notice(rollout.notice)),
        ]
    )
    terminal.echo()
    WAVES.print(enumerate(rollout.waves, start=1))
    show_progress(session, rollout)
    _show_reasons(rollout)
    _show_warnings(rollout)


def _known_or_about(known: datetime | None, expected: datetime | None) -> datetime | str | None:
    """Return the known time or, before that, the expected time."""
    return known if known or not expected else f"~{formatting.utc(expected)}"


def _health(rollout: RolloutAnswer) -> str:
    polls = ", and polls again if it polled before" if rollout.require_poll else ""
    return f"each machine is healthy within {format_span_briefly(rollout.health_seconds)}{polls}"


def _action(rollout: RolloutAnswer) -> str:
    if rollout.action is not RolloutAction.SERVICE:
        return rollout.action
    mode = rollout.mode or ServiceMode.EVACUATE
    back = ", and machines return" if rollout.returning else ""
    work = f", by {rollout.host_work}" if rollout.host_work else ""
    return f"{rollout.action} ({mode}{back}){work}"


def _canaries(rollout: RolloutAnswer) -> str | None:
    if not rollout.canary:
        return None
    soak = (
        f", then {format_span_briefly(rollout.soak_seconds)} before the others"
        if rollout.soak_seconds
        else ""
    )
    hosts = formatting.some(rollout.hosts[: rollout.canary], MOST_NAMES)
    return f"{hosts} first, one after the other{soak}"


def _failures(rollout: RolloutAnswer) -> str | None:
    if rollout.max_failures == "0":
        return None
    return f"skips up to {rollout.max_failures} hosts before it pauses"


def show_started(session: Session, rollout: RolloutAnswer) -> None:
    """Show a started rollout, and how to follow it."""
    show(session, rollout)
    terminal.echo()
    terminal.echo_steps({"Follow": session.command(f"rollout show {terminal.short(rollout.id)} --follow")})


def show_plan(rollout: RolloutAnswer) -> None:
    """Show a plan, wave by wave."""
    waves, first = rollout.waves, _known(rollout.waves[0].announce_at)
    # A plan has no end if its last waves fit into no window.
    last = _known(rollout.ends_at or waves[0].end_at)
    table = terminal.ItemTable[NumberedWave](
        columns={
            "WAVE": lambda each: each[0],
            "HOSTS": lambda each: _hosts(each[1]),
            "ANNOUNCED": lambda each: each[1].announce_at,
            "STARTS BY": lambda each: each[1].start_at,
            "ENDS ABOUT": lambda each: each[1].end_at,
            "TIMELINE": lambda each: _bar(each[1], first, last),
        },
        wraps=("HOSTS",),
        spare=("TIMELINE",),
    )
    lines = table.lines(list(enumerate(waves, start=1)))
    terminal.print_lines(lines)
    count = formatting.counted(len(waves), "wave")
    length = formatting.between(first, rollout.ends_at)
    drawn = any(mark in line.plain for line in lines for mark in (NOTICE, WORK))
    legend = f" ({NOTICE} notice, {WORK} work)" if drawn else ""
    disturbs = any(wave.stages for wave in waves)
    terminal.echo(
        f"\n{count}, {length} without early approvals{legend}." if disturbs else f"\n{count}: {IDLE}."
    )
    if rollout.simulated_hosts:
        mark = formatting.SIMULATED_MARK if rollout.driver == SIMULATED else _driver(rollout)
        terminal.echo_wrapped(f"{mark[0].upper()}{mark[1:]}.")
    _show_care(rollout)
    _show_emptying(rollout)
    _show_reasons(rollout)
    _show_warnings(rollout)


def _show_care(rollout: RolloutAnswer) -> None:
    """Show the canaries, and how many hosts may fail."""
    canaries, failures = _canaries(rollout), _failures(rollout)
    for said in filter(None, (canaries and f"Canaries: {canaries}", failures and f"Failures: {failures}")):
        terminal.echo_wrapped(f"{said}.")


def _show_emptying(rollout: RolloutAnswer) -> None:
    """Show how many hosts can be emptied, and which machines prevent the others."""
    if not rollout.emptying:
        return
    kept = [host for host in rollout.emptying if not host.possible]
    able = len(rollout.emptying) - len(kept)
    terminal.echo(f"\n{able} of {formatting.counted(len(rollout.emptying), 'host')} can be emptied.")
    for host in kept[:MOST_HOSTS]:
        carried = formatting.counted(host.machines, "machine")
        terminal.echo(f"  {host.host}: {len(host.obstacles)} of {carried} cannot leave")
        for each in host.obstacles[:MOST_MACHINES]:
            terminal.echo_wrapped(f"{each.machine}: {each.reason}", indent="    ", hanging="      ")
        if len(host.obstacles) > MOST_MACHINES:
            terminal.echo(f"    … and {len(host.obstacles) - MOST_MACHINES} more")
    if len(kept) > MOST_HOSTS:
        terminal.echo(f"  … and {len(kept) - MOST_HOSTS} more hosts (--json shows all)")


def _bar(wave: WaveAnswer, first: datetime, last: datetime) -> str:
    """Draw the part of the whole time that one wave takes."""
    if not wave.stages:
        return IDLE
    whole = (last - first).total_seconds() or 1.0
    drawn = ""
    for stage in wave.stages:
        at, start, end = (
            round(WIDTH * (moment - first).total_seconds() / whole)
            for moment in (stage.announce_at, stage.start_at, stage.end_at)
        )
        drawn = drawn.ljust(at) + NOTICE * (start - max(at, len(drawn)))
        drawn += WORK * max(end - len(drawn), 1)
    return drawn


def _show_reasons(rollout: RolloutAnswer) -> None:
    if not rollout.waiting:
        return
    terminal.echo("\nWaiting for:")
    reasons = _each_once(rollout.waiting)
    show_waiting(reasons[:MOST_REASONS])
    if len(reasons) > MOST_REASONS:
        terminal.echo(f"  … and {len(reasons) - MOST_REASONS} more (--json shows all)")


def _each_once(waiting: Iterable[WaitingAnswer]) -> list[WaitingAnswer]:
    """Return each reason once, with all that wait for it; events stay separate."""
    whose: dict[str, list[str]] = {}
    for each in waiting:
        whose.setdefault(each.reason, []).append(each.what)
    return [
        WaitingAnswer(what=what, reason=reason)
        for reason, named in whose.items()
        for what in (named if any(map(is_guid, named)) else [formatting.some(named, MOST_NAMES)])
    ]


def _show_warnings(rollout: RolloutAnswer) -> None:
    if rollout.warnings:
        terminal.echo("\nWarnings:")
    for warning in rollout.warnings:
        terminal.echo_wrapped(warning, indent="  ", hanging="    ")


def _known(moment: datetime | None) -> datetime:
    """Return a time that every plan has."""
    if moment is None:
        raise AnswerNotUnderstood("the server sent a plan without times")
    return moment
