"""Times as people type them."""

import typer


def seconds(text: str, *, hint: str) -> float:
    """Read a time such as `90`, `15m` or `7d`; `hint` names where it was typed."""
    from forewarn.config import duration

    try:
        return duration(text).total_seconds()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"expected a time such as 90, 15m, 1h30m or 7d, got {text!r}", param_hint=hint
        ) from None
