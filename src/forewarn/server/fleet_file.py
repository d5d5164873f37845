"""The fleet file that a server is started with: applied if it is new, and the difference shown."""

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

# More lines of one kind than that tell a person nothing.
SHOWN = 10


def check_file(path: str, drivers: KnownDrivers) -> None:
    """Refuse a fleet file that would be refused whatever the store holds."""
    table = parse_toml(read_file(path), name=path, finite=True)
    try:
        check_declaration(read_fleet(table), drivers)
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from None


def apply_file(fleet: FleetCommands, transact: Transact, path: str, *, say: Callable[[str], None]) -> None:
    """Apply a fleet file, unless it is the one that was applied last."""
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
        raise type(error)(f"{path}: {error}") from None


def read_file(path: str) -> str:
    """Read a fleet file; refuse one that cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable_fleet_file(path, error) from None


def _show(changes: tuple[str, ...], path: str, say: Callable[[str], None]) -> None:
    """Show the difference; additions are only counted if they are many, for they do no harm."""
    say(f"Applying {path}:")
    added = [line for line in changes if line.startswith("+")]
    if len(added) > SHOWN:
        kinds = Counter(line.split()[1] for line in added)
        say("  + " + ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()))
        changes = tuple(line for line in changes if not line.startswith("+"))
    for line in changes:
        say(f"  {line}")
