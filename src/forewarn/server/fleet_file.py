"""The fleet file of `forewarn serve`: show the difference and apply it, if the file has changed."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from forewarn.control.driver import KnownDrivers
from forewarn.control.fleet.declarations import FleetCommands, check_declaration
from forewarn.core.errors import Conflict, Invalid
from forewarn.core.toml_text import parse_toml
from forewarn.store.batch import Transact
from forewarn.wire.fleet import read_fleet, unreadable_fleet_file

# More additions are only counted.
SHOWN = 10


def check_file(path: str, drivers: KnownDrivers) -> None:
    """Raise Invalid for a fleet file that no store accepts."""
    table = parse_toml(read_file(path), name=path, finite=True)
    try:
        check_declaration(read_fleet(table), drivers)
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from None


def apply_file(fleet: FleetCommands, transact: Transact, path: str, *, say: Callable[[str], None]) -> None:
    """Apply a fleet file unless it was the last one to be applied."""
    text = read_file(path)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest == fleet.applied_fleet():
        return
    table = parse_toml(text, name=path, finite=True)
    try:
        spec = read_fleet(table)
        checked = fleet.check(spec, by=f"file {path}")
        _show(checked.changes, path, say)
        application = fleet.application(checked, digest=digest, by=f"file {path}")
        while not application.over:
            application.apply_next(transact)
    except (Invalid, Conflict) as error:
        kind = Invalid if isinstance(error, Invalid) else Conflict
        raise kind(f"{path}: {error}") from None


def read_file(path: str) -> str:
    """Read a fleet file; raise Invalid if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_fleet_file(path, error) from None


def _show(changes: tuple[str, ...], path: str, say: Callable[[str], None]) -> None:
    """Show the difference; if there are many additions, only count them, because they are harmless."""
    say(f"Applying {path}:")
    added = [line for line in changes if line.startswith("+")]
    if len(added) > SHOWN:
        kinds = Counter(line.split()[1] for line in added)
        say("  + " + ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()))
        changes = tuple(line for line in changes if not line.startswith("+"))
    for line in changes:
        say(f"  {line}")
