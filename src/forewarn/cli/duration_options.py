"""Times as people type them."""

from typing import Annotated

import typer

from forewarn.core.moments import EXPECTED_SPAN, parse_span

Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline", metavar="TIME", help="From then on windows give way; as 2026-01-31T12:00:00Z."
    ),
]
Takes = Annotated[
    str | None,
    typer.Option(
        "--takes",
        metavar="DURATION",
        help="How long a host is expected to take, where windows bind it.",
    ),
]
Heartbeat = Annotated[
    str | None,
    typer.Option(
        "--heartbeat", metavar="DURATION", help="How long an external driver may be silent. Else 10m."
    ),
]


def seconds(text: str, *, hint: str) -> float:
    """Read a time such as `90`, `15m` or `7d`; `hint` names where it was typed."""
    try:
        return parse_span(text).total_seconds()
    except ValueError:
        raise typer.BadParameter(f"{EXPECTED_SPAN}, got {text!r}", param_hint=hint) from None


def seconds_or_none(text: str | None, *, hint: str) -> float | None:
    """Read a time, if one was typed."""
    return None if text is None else seconds(text, hint=hint)
