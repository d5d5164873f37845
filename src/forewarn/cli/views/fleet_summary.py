"""The fleet, counted: a line for all of it, and a row for each update domain."""

from collections.abc import Iterator, Mapping

from forewarn.cli import terminal
from forewarn.core.model.fleet_counts import DomainSummary, GroupSummary
from forewarn.wire.answers.fleet_answers import SummaryAnswer

Row = tuple[GroupSummary, DomainSummary]

DOMAINS = terminal.ItemTable[Row](
    columns={
        "GROUP": lambda row: row[0].name or "(standalone)",
        "PROJECT": lambda row: row[0].project,
        "KIND": lambda row: row[0].kind,
        "UD": lambda row: row[1].update_domain,
        "MACHINES": lambda row: row[1].machines,
        "STATES": lambda row: _by_state(row[1].states),
        "SCHEDULED": lambda row: row[1].scheduled,
        "STARTED": lambda row: row[1].started,
    },
    wraps=("STATES",),
    spare=("KIND",),
    spare_if_same=("PROJECT",),
    empty="No groups and no machines: `forewarn fleet apply FILE` declares a fleet.",
)


def show_summary(summary: SummaryAnswer) -> None:
    """Print what there is, and each update domain."""
    terminal.details(_totals(summary))
    terminal.echo()
    DOMAINS.print((group, domain) for group in summary.groups for domain in group.update_domains)


def _totals(summary: SummaryAnswer) -> Iterator[tuple[str, object]]:
    yield "machines", _counted(summary.states)
    if summary.hosts is not None:
        yield "hosts", _counted(summary.hosts)
    yield "events", _counted(summary.events)
    yield "open orders", _counted(summary.orders)
    if summary.rollouts is not None:
        yield "open rollouts", _counted(summary.rollouts)
    if summary.holds is not None:
        yield "holds", summary.holds


def _counted(states: Mapping[str, int]) -> str:
    """Write how many there are, and in which states: `14 (13 running, 1 frozen)`."""
    total = sum(states.values())
    return f"{total} ({_by_state(states)})" if total else "none"


def _by_state(states: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.items() if count)
