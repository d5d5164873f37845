"""Draw a night: one line for each host, coloured by the work on it over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, LEFT, TOP, LINE = 960, 64, 44, 1.4
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.t{font-weight:600;fill:#222}.g{stroke:#ddd}"
    ".announced{stroke:#9ca3af}.moving{stroke:#2563eb}.work{stroke:#16a34a}.failed{stroke:#dc2626}.outage{fill:#fde68a}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}.t{fill:#eee}.g{stroke:#444}.outage{fill:#713f12}"
    ".announced{stroke:#6b7280}.moving{stroke:#60a5fa}.work{stroke:#4ade80}.failed{stroke:#f87171}}"
)
LEGEND = (
    ("announced", "announced"),
    ("moving", "machines leave"),
    ("work", "worked on"),
    ("failed", "lost or failed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A period of work on a host."""

    host: str
    kind: str  # a key of the legend
    since: datetime
    until: datetime


def draw(
    spans: Sequence[Span],
    *,
    hosts: Sequence[str],
    begin: datetime,
    end: datetime,
    outages: Iterable[tuple[datetime, datetime]],
    title: str,
) -> str:
    """Draw the hosts from top to bottom, in the given order."""
    height = TOP + len(hosts) * LINE + 30
    lines = {host: TOP + number * LINE for number, host in enumerate(hosts)}

    def x(moment: datetime) -> float:
        at = min(max(moment, begin), end)
        return LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - 12)

    parts = [f'<text class="t" x="{LEFT}" y="16">{title}</text>']
    for number, (kind, name) in enumerate(LEGEND):
        at = LEFT + number * 150
        parts.append(
            f'<path class="{kind}" stroke-width="4" d="M{at} 30h16"/><text x="{at + 22}" y="34">{name}</text>'
        )
    bottom = height - 26
    for since, until in outages:
        parts.append(
            f'<rect class="outage" x="{x(since):.1f}" y="{TOP}" width="{x(until) - x(since):.1f}" '
            f'height="{bottom - TOP:.1f}"><title>no database</title></rect>'
        )
    hour = begin.replace(minute=0, second=0, microsecond=0)
    while (hour := hour + timedelta(hours=1)) < end:
        parts.append(f'<path class="g" d="M{x(hour):.1f} {TOP}V{bottom:.1f}"/>')
        parts.append(
            f'<text x="{x(hour):.1f}" y="{height - 10:.0f}" text-anchor="middle">{hour:%H:%M}</text>'
        )
    parts.append(f'<text x="{LEFT - 6}" y="{TOP + 10}" text-anchor="end">{len(hosts)} hosts</text>')
    for span in spans:
        y, left, right = lines[span.host], x(span.since), x(span.until)
        if right - left >= 0.1:
            parts.append(
                f'<path class="{span.kind}" stroke-width="{LINE}" d="M{left:.1f} {y:.1f}H{right:.1f}"/>'
            )
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    drawn = "".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{STYLE}</style>{drawn}</svg>\n'
