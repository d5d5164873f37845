"""Promises: what became of them, counted by project and month; and machines are counted by their group."""

from collections import Counter, defaultdict
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

# A project, a month, whether it was simulated; for each of them, how many of what.
Key = tuple[str, str, bool]
Counts = defaultdict[Key, Counter[str]]

# Of an event, what started, and how many machines it names now.
_STARTED = """
SELECT r.number, r.at, r.project, e.id, json_array_length(e.resources), o.driver, o.work
FROM records r JOIN events e ON e.id = r.event_id JOIN orders o ON o.id = e.order_id
WHERE r.kind = 'event-started' AND e.started_at > e.announced_at AND e.not_before > e.announced_at
"""
_BROKEN = """
SELECT r.at, r.project, o.driver, o.work FROM records r JOIN orders o ON o.id = r.order_id
WHERE r.kind = 'promise-broken' AND r.project IS NOT NULL
"""
_NOT_IN_TIME = "SELECT event_id, kind, reason FROM records WHERE kind IN ('notice-late', 'notice-never')"
_LEFT = "SELECT event_id, number FROM records WHERE kind = 'event-left'"


def upgrade() -> None:
    """Count what the records that are still there tell."""
    name = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "promises",
        sa.Column("project", name, nullable=False),
        sa.Column("month", name, nullable=False),
        sa.Column("simulated", sa.Boolean, nullable=False),
        sa.Column("kept", sa.BigInteger, nullable=False),
        sa.Column("late", sa.BigInteger, nullable=False),
        sa.Column("never", sa.BigInteger, nullable=False),
        sa.Column("broken", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project", "month", "simulated"),
    )
    fill()
    op.drop_index("machines_group", "machines")
    op.create_index("machines_group", "machines", ["group_name", "update_domain", "state"])


def fill() -> None:
    """Count by project and month."""
    connection = op.get_bind()
    counts: Counts = defaultdict(Counter)
    _count_notices(connection, counts)
    for at, project, driver, work in connection.execute(sa.text(_BROKEN)):
        counts[_key(project, at, driver, work)]["broken"] += 1
    table = sa.table(
        "promises", *map(sa.column, ("project", "month", "simulated")), *map(sa.column, _COUNTED)
    )
    rows = [
        {"project": project, "month": month, "simulated": simulated}
        | {each: found[each] for each in _COUNTED}
        for (project, month, simulated), found in counts.items()
    ]
    if rows:
        connection.execute(sa.insert(table), rows)


_COUNTED = ("kept", "late", "never", "broken")


def _count_notices(connection: sa.Connection, counts: Counts) -> None:
    not_in_time: dict[str, Counter[str]] = defaultdict(Counter)
    for event, kind, reason in connection.execute(sa.text(_NOT_IN_TIME)):
        # As in `promised 15 m: web-0 got 2 m, web-1 got 3 m`; no name has a comma in it.
        _, _, names = reason.partition(": ")
        not_in_time[event][kind.removeprefix("notice-")] += len(names.split(", "))
    left: dict[str, list[int]] = defaultdict(list)
    for event, number in connection.execute(sa.text(_LEFT)):
        left[event].append(number)
    for number, at, project, event, names, driver, work in connection.execute(sa.text(_STARTED)):
        named = names + sum(later > number for later in left.get(event, ()))
        found = not_in_time.get(event, Counter())
        kept = max(named - found["late"] - found["never"], 0)
        counts[_key(project, at, driver, work)].update({**found, "kept": kept})


def _key(project: str, at: int, driver: str, work: str | None) -> Key:
    month = datetime.fromtimestamp(at // 1_000_000, UTC).strftime("%Y-%m")
    return project, month, driver == "simulated" and work not in (None, "recommend")
