"""One open transaction, as all parts of a snapshot share it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy import Connection, Update, update

from forewarn.core.basic_types import GroupName, MachineId, ProjectName
from forewarn.core.model.group import Group
from forewarn.core.model.host import Host
from forewarn.core.model.machine import Machine
from forewarn.core.scope import EVERYTHING, Scope
from forewarn.store import tables
from forewarn.store.prefetch import Loaded
from forewarn.store.rows.mapping import Columns, Row
from forewarn.store.rows.stored import GROUPS, HOSTS, MACHINES, META, Meta
from forewarn.store.saved import SavedChanges

SELECT_META = META.select()
# SQLite knows no row locks and needs none: its writers have begun with BEGIN IMMEDIATE.
LOCK_META = SELECT_META.where(tables.THE_META_ROW).with_for_update()
_UPDATE_META = update(tables.meta).where(tables.THE_META_ROW)


class KnownMeta:
    """What is known of the store as a whole: all that are part of one transaction share it."""

    __slots__ = ("loaded", "meta", "stored")

    def __init__(self) -> None:
        self.meta: Meta | None = None
        self.stored: Meta | None = None  # what the database has of it
        self.loaded = Loaded()  # for all of them

    @property
    def unwritten(self) -> bool:
        """Whether it has changed, and the database has it not yet."""
        return self.meta is not None and self.meta is not self.stored

    def read(self, row: Row) -> Meta:
        """Read what the database has of it."""
        self.meta = self.stored = META.read(row)
        return self.meta

    def write(self, write: Callable[[Update, Sequence[Columns]], None]) -> None:
        """Have what has changed written: once for a transaction, however much it has saved."""
        if self.meta is None or self.stored is None or not self.unwritten:
            return
        known, row = META.write(self.stored), META.write(self.meta)
        if changed := {name: value for name, value in row.items() if value != known[name]}:
            write(_UPDATE_META, [changed])
        self.stored = self.meta


class OpenTransaction:
    """A connection with whose things are seen on it, and what was read that a save must know."""

    def __init__(
        self,
        begin: Callable[[], Connection],
        *,
        lock: bool = False,
        scope: Scope = EVERYTHING,
        known: KnownMeta | None = None,
        saved: list[SavedChanges] | None = None,
    ) -> None:
        """Read what a scope sees; the connection is opened by the first statement.

        What is saved is added to a list.
        """
        self._begin = begin
        self.scope = scope
        self.versions: dict[GroupName, int] = {}
        self.groups: dict[GroupName, Group] = {}  # as they were read
        self.enabled: set[GroupName] = set()  # of those groups
        # Machines that were found, with the hosts that carry them, until something is saved.
        self.found: dict[MachineId, tuple[Machine, Host | None]] = {}
        self.saved = [] if saved is None else saved
        self._known = known or KnownMeta()
        self._lock = lock
        self._is_begun = False

    @property
    def connection(self) -> Connection:
        """The connection; where the counter is to be locked, it is from the start."""
        connection = self._begin()
        if not self._is_begun:
            self._is_begun = True
            if self._lock and self._known.meta is None:
                self._known.read(connection.execute(LOCK_META).one())
        return connection

    @property
    def project(self) -> ProjectName | None:
        """The project whose things alone are seen; None: all."""
        return self.scope.project

    @property
    def meta(self) -> Meta:
        """What is kept of the store as a whole; read when it is first asked for."""
        connection = self.connection  # which may have read it
        if self._known.meta is not None:
            return self._known.meta
        return self._known.read(connection.execute(LOCK_META if self._lock else SELECT_META).one())

    @property
    def loaded(self) -> Loaded:
        """What was loaded for several transactions at once."""
        return self._known.loaded

    def keep(self, meta: Meta) -> None:
        """Keep something else of the store as a whole: written when all of the transaction is saved."""
        self._known.meta = meta

    def reached_by(self, now: datetime) -> datetime:
        """Return the service time reached at a moment: it never goes back."""
        return now if self.meta.reached is None else max(now, self.meta.reached)

    def read_machine(self, row: Row) -> Machine:
        """Read a machine, and remember it with its host: what is found by name is often loaded next."""
        beside = row[len(MACHINES.columns) :]
        machine, host = MACHINES.read(row), None if beside[0] is None else HOSTS.read(beside)
        self.found[machine.id] = (machine, host)
        return machine

    def read_group(self, row: Row) -> Group:
        """Read a group, and remember its version for compare-and-set, and whether it was enabled."""
        group = GROUPS.read(row)
        self.versions[group.name] = row[len(GROUPS.columns)]
        self.groups[group.name] = group
        if group.enabled:
            self.enabled.add(group.name)
        return group
