"""Fill a store of any size directly, which is faster than applying such a fleet.

The first rack is applied normally. The rows of all other racks are copies with new names, ids and addresses.
"""

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bench import fleets

# Racks in one transaction. The rows of a million machines do not have to fit into memory.
RACKS_AT_ONCE = 50
# The history and the metadata belong to the application of the first rack only.
NOT_COPIED = ("records", "meta")

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRack:
    """The stored rows of the first rack."""

    tables: Mapping[str, Sequence[Row]]
    machines: Sequence[tuple[str, str, str]]  # ids, names and addresses
    groups: Sequence[str]  # groups of more than one machine


def fill(database: Path, racks: int, *, log: Callable[[str], None]) -> None:
    """Create a store of identical racks with notice on for all groups."""
    fleets.make_store(database, fleets.racks(1), enabled=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000")
        first = _first_rack(connection)
        for start in range(1, racks, RACKS_AT_ONCE):
            for rack in range(start, min(start + RACKS_AT_ONCE, racks)):
                _copy(connection, first, rack)
            connection.commit()
            if start % (40 * RACKS_AT_ONCE) == 1:
                log(f"{start * fleets.RACK:,} of {racks * fleets.RACK:,} machines are stored")
        connection.executescript("PRAGMA wal_checkpoint(TRUNCATE)")


def _first_rack(connection: sqlite3.Connection) -> FirstRack:
    machines = connection.execute("SELECT id, name, address FROM machines").fetchall()
    groups = [name for (name,) in connection.execute("SELECT name FROM groups WHERE kind <> 'standalone'")]
    first = FirstRack(tables={}, machines=machines, groups=groups)
    known = _renamed(first, 0).keys()
    found = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        mine = [row for row in rows if not known.isdisjoint(row)]
        if mine and table not in NOT_COPIED:
            found[table] = mine
    return FirstRack(tables=found, machines=machines, groups=groups)


def _copy(connection: sqlite3.Connection, first: FirstRack, rack: int) -> None:
    new = _renamed(first, rack)
    for table, rows in first.tables.items():
        marks = ", ".join("?" * len(rows[0]))
        copies: Iterator[Row] = (tuple(new.get(value, value) for value in row) for row in rows)
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", copies)


def _renamed(first: FirstRack, rack: int) -> dict[object, object]:
    """Map each name, id and address of the first rack to its value in another rack."""
    new: dict[object, object] = {
        f"host-{number}": f"host-{rack * fleets.HOSTS + number}" for number in range(fleets.HOSTS)
    }
    new |= {name: name.replace("set-0-", f"set-{rack}-") for name in first.groups}
    for id_, name, address in first.machines:
        other = str(uuid.uuid4())
        place = int(name.rpartition("-")[2])
        new |= {id_: other, f"standalone/{id_}": f"standalone/{other}", name: f"vm-{rack}-{place}"}
        new[address] = fleets.address(rack * fleets.RACK + place)
    return new
