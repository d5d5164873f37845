"""The private service of a test, on a thread of its own."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from forewarn.api.services import Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.use_case import ExclusiveJob
from forewarn.core.basic_types import HostName
from forewarn.core.errors import ForewarnError
from forewarn.core.model.declaration import FleetSpec, HostSpec
from forewarn.core.rehearsal_ledger import GuestAccount, GuestLedger
from forewarn.core.rehearsal_rules import Fault
from forewarn.rehearsal.private_service import PrivateService, private_service
from forewarn.rehearsal.timeline import ScenarioClock
from forewarn.store.batch import Transact, Transaction

__tracebackhide__ = True  # pytest shows the line of the test instead

T = TypeVar("T")

# The name of the test in records and in the log.
TEST = "test"
# More than one: a redeploy needs another host.
HOSTS = ("host-1", "host-2", "host-3")


class FleetService:
    """A running service; any thread may call it."""

    def __init__(self, private: PrivateService) -> None:
        """Take the private service, on the event loop that runs it."""
        self._loop = asyncio.get_running_loop()
        self._services = private.services
        self.stopped = asyncio.Event()
        self._private = private
        self._clock = ScenarioClock(private.services.timekeeper.now)
        self._clock.begin()
        self._ledger = GuestLedger()
        self._ledger.set_listener(self.note)
        # Not through the API: machines join one by one, as the test mentions them.
        self._rehearsal = private.guest.rehearse(self._ledger)
        self._faults: dict[int, Fault] = {}  # owner: the thread of the loop
        self.log: list[str] = []  # any thread appends; lines are never removed

    def read(self, job: Callable[[CallerReads], T]) -> T:
        """Read the committed state."""
        return self.do(self.reading(job))

    async def reading(self, job: Callable[[CallerReads], T]) -> T:
        """Read the committed state, on the loop of the service."""
        return await self._services.read(job)

    def now(self) -> datetime:
        """Return service time."""
        return self._clock.now()

    def act(self, job: Callable[[Services, Transaction], T]) -> T:
        """Run a use case in a transaction; its effect is visible when this returns."""
        return self.do(self._services.run_whole(partial(job, self._services)))

    def act_alone(self, job: Callable[[Services, Transact], T]) -> T:
        """Run a use case that opens transactions itself, such as advancing the clock."""
        return self.do(self._services.run_whole(ExclusiveJob(partial(job, self._services))))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the service, and wait for its result."""
        try:
            return self.begin(work).result()
        except (ForewarnError, ValueError, TimeoutError) as refusal:
            # The message says what is wrong in the test. The traceback of the other thread would not help.
            raise refusal.with_traceback(None) from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine on the loop of the service."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def open_endpoint(self, machine: str) -> str:
        """Open the guest endpoint of a machine, and return its URL."""
        return self.do(self._open_endpoint(machine))

    async def _open_endpoint(self, machine: str) -> str:
        self._rehearsal.admit(await self._private.machine_id(machine), machine)
        return await self._private.open_endpoint(machine)

    def account(self, machine: str) -> GuestAccount:
        """Return the account of the guest of a machine."""
        return self._ledger.accounts[machine]

    def put(self, fault: Fault) -> None:
        """Inject a fault; it is in force when this returns."""
        self.do(self._change_faults(lambda: self._faults.update({fault.number: fault})))

    def lift(self, fault: Fault) -> None:
        """End a fault, if it is still in force."""
        self.do(self._change_faults(lambda: self._faults.pop(fault.number, None)))

    async def _change_faults(self, change: Callable[[], object]) -> None:
        change()
        self._rehearsal.meet(tuple(self._faults.values()))

    def stop(self) -> None:
        """Stop the service."""
        self._loop.call_soon_threadsafe(self.stopped.set)

    def note(self, who: str, what: str, *, at: datetime | None = None) -> None:
        """Add a line to the log, with the service time since the start."""
        minutes, seconds = divmod(int(self._clock.elapsed().total_seconds()), 60)
        self.log.append(f"{minutes:3} m {seconds:02} s  {who}: {what}")


@contextmanager
def running_service() -> Iterator[FleetService]:
    """Run a service with three hosts on a thread of its own, and stop it afterwards."""
    opened: Future[FleetService] = Future()
    # A daemon thread, so that it never keeps the test run from ending.
    thread = threading.Thread(target=_run, args=(opened,), name="forewarn-testing", daemon=True)
    thread.start()
    service = opened.result()
    try:
        yield service
    finally:
        service.stop()
        thread.join()


def _run(opened: "Future[FleetService]") -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(opened))
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)  # for the thread of the test


async def _serve(opened: "Future[FleetService]") -> None:
    fleet = FleetSpec(hosts=tuple(HostSpec(name=HostName(name)) for name in HOSTS))
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="forewarn-testing-"))
        private = await stack.enter_async_context(private_service(Path(folder), fleet=fleet, clock="manual"))
        service = FleetService(private)
        opened.set_result(service)
        await service.stopped.wait()
