"""Times as people type them."""

from typing import Annotated

import typer

Deadline = Annotated[
    str | None,
    typer.Option(
        "--deadline", metavar="TIME", help="From then on windows give way; as 2026-01-31T12:00:00Z."
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
    from forewarn.config import duration

    try:
        return duration(text).total_seconds()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"expected a time such as 90, 15m, 1h30m or 7d, got {text!r}", param_hint=hint
        ) from None
