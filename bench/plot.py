"""Small SVG charts, one for each measured quantity. Both axes are logarithmic."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 300, 220
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 44, 36
COLUMNS = 3
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#444}.t{font-weight:600;fill:#222}.g{stroke:#ddd}"
    ".c{fill:none;stroke:#2563eb;stroke-width:2}.p{fill:#2563eb}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}.t{fill:#eee}.g{stroke:#444}.c{stroke:#60a5fa}.p{fill:#60a5fa}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A quantity that was measured at each size."""

    key: str
    title: str
    unit: str


def draw(found: Mapping[int, Mapping[str, float]], curves: Sequence[Curve]) -> str:
    """Draw one chart for each curve."""
    rows = -(-len(curves) // COLUMNS)
    size = f'width="{COLUMNS * WIDTH}" height="{rows * HEIGHT}"'
    charts = "".join(
        f'<g transform="translate({place % COLUMNS * WIDTH},{place // COLUMNS * HEIGHT})">'
        f"{_chart(curve, {size: figures[curve.key] for size, figures in found.items()})}</g>"
        for place, curve in enumerate(curves)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><style>{STYLE}</style>{charts}</svg>\n'


def _chart(curve: Curve, points: Mapping[int, float]) -> str:
    low, high = _decades(points.values())
    least, most = _decades(points)

    def x(size: float) -> float:
        return LEFT + (math.log10(size) - least) / (most - least) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<text class="t" x="{LEFT}" y="18">{curve.title}</text><text x="{LEFT}" y="34">{curve.unit}</text>'
    ]
    for power in range(low, high + 1):
        at = y(10.0**power)
        parts.append(f'<path class="g" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    for size in points:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{_short(size)}</text>')
    line = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points.items())
    dots = "".join(
        f'<circle class="p" cx="{x(size):.1f}" cy="{y(value):.1f}" r="3"><title>{value:,g}</title></circle>'
        for size, value in points.items()
    )
    return "".join([*parts, f'<polyline class="c" points="{line}"/>', dots])


def _decades(values: Iterable[float]) -> tuple[int, int]:
    """Return the exponents of the powers of ten around some values."""
    numbers = list(values)
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    return low, max(high, low + 1)


def _short(size: int) -> str:
    return (
        f"{size // 1_000_000} M" if size >= 1_000_000 else f"{size // 1000} k" if size >= 1000 else str(size)
    )
