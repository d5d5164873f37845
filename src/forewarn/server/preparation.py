"""The server before it listens: its store, clock and drivers. The ids and secrets are made here, too."""

import logging
import secrets
import uuid
from dataclasses import dataclass, field, replace

from forewarn.clock import Clock, ManualClock, ScaledClock, SystemClock, clock_of, monotonic
from forewarn.config import Settings
from forewarn.control.fleet.declarations import FleetCommands
from forewarn.control.use_case import Context
from forewarn.drivers.registry import Drivers
from forewarn.server.log_setup import log_records
from forewarn.server.threads import time_keeping
from forewarn.server.threads.batches import Batches
from forewarn.signals import Signal
from forewarn.store.batch import Transact
from forewarn.store.opening.database import parse_database
from forewarn.store.saved import Listener, Saved
from forewarn.store.store import Store, open_store

log = logging.getLogger(__name__)


def new_id() -> str:
    """Make an upper-case GUID."""
    return str(uuid.uuid4()).upper()


def new_secret() -> str:
    """Make 256 random bits as text."""
    return secrets.token_urlsafe(32)


class CommitListeners:
    """Functions that the store calls after each commit, in the order in which they were added."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)  # owner: the start of the server, before the worker runs

    def add(self, *listeners: Listener) -> None:
        """Call these functions, too, after each commit from now on."""
        self._listeners += listeners

    def notify(self, saved: Saved) -> None:
        """Call every listener. A failure is only logged, because the caller must learn of the commit."""
        for listener in self._listeners:
            try:
                listener(saved)
            except Exception:
                log.exception("a listener failed after a commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedServer:
    """The open store, with service time continued from where the store left it."""

    settings: Settings
    store: Store
    clock: SystemClock | ScaledClock | ManualClock
    drivers: Drivers
    listeners: CommitListeners = field(default_factory=lambda: CommitListeners(log_records))

    @property
    def context(self) -> Context:
        """The context of use cases while no guest is served."""
        context = context_of(self.store, self.clock, self.settings)
        policy = replace(
            context.policy,
            hooks=self.settings.hooks.tasks,
            fencing=self.drivers.fencing,
            working_on_hosts=self.drivers.working_on_hosts,
            cordoning=self.drivers.cordoning,
            choosing_hosts=self.drivers.choosing_hosts,
            prechecking=self.drivers.prechecking,
            verifying_restarts=self.drivers.verifying_restarts,
        )
        return replace(context, drivers=self.drivers.known, policy=policy)

    @property
    def transact(self) -> Transact:
        """Run work in a transaction of its own. Only for the start, before the worker runs."""
        return Batches(self.store).transact

    @property
    def fleet(self) -> FleetCommands:
        """The use cases that declare a fleet before the server listens."""
        return FleetCommands(self.context, webhooks_changed=Signal())

    def close(self) -> None:
        """End the driver processes and close the store."""
        self.drivers.stop()
        self.store.close()


def context_of(store: Store, clock: Clock, settings: Settings) -> Context:
    """Make the context of use cases."""
    return Context(
        store=store,
        clock=clock,
        policy=settings.times,
        new_id=new_id,
        real_now=SystemClock().now,
        preview=settings.guest.preview,
    )


def drivers_of(settings: Settings) -> Drivers:
    """Make the configured drivers; raise Invalid that names a wrong setting."""
    return Drivers(settings, monotonic=monotonic)


def prepare_server(settings: Settings, drivers: Drivers) -> PreparedServer:
    """Open the store and continue service time from where the store left it."""
    clock = clock_of(settings.clock)
    store = open_store(settings.database, new_id=new_id)
    prepared = PreparedServer(settings=settings, store=store, clock=clock, drivers=drivers)
    store.saved = prepared.listeners.notify
    try:
        time_keeping.begin(
            clock, store, name=parse_database(settings.database).name, system=SystemClock().now()
        )
    except BaseException:
        store.close()
        raise
    return prepared
