"""The service of one test: a private one, on a thread of its own, asked from the test's."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from forewarn.api.services import Services
from forewarn.control.all_use_cases import CallerReads
from forewarn.control.use_case import Alone
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

# Who does what the test does, as records and the log name it.
TEST = "test"
# A machine that is redeployed needs another host to go to.
HOSTS = ("host-1", "host-2", "host-3")


class FleetService:
    """A running service, as any thread may ask it."""

    def __init__(self, private: PrivateService, stack: AsyncExitStack) -> None:
        """Take what it consists of, on its own loop; the stack is unwound when it ends."""
        self._loop = asyncio.get_running_loop()
        self._services = private.services
        self._stack = stack
        self._private = private
        self._clock = ScenarioClock(private.services.timekeeper.now)
        self._clock.begin()
        self._ledger = GuestLedger()
        self._ledger.set_listener(self.note)
        # Not through the API: machines join one by one, as the test names them.
        self._rehearsal = private.guest.rehearse(self._ledger)
        self._faults: dict[int, Fault] = {}  # its loop's thread has it
        self.log: list[str] = []  # any thread appends to it, and nothing is ever removed

    def read(self, job: Callable[[CallerReads], T]) -> T:
        """Read something of what is committed."""
        return self.do(self.reading(job))

    async def reading(self, job: Callable[[CallerReads], T]) -> T:
        """Do the same, on its loop."""
        return await self._services.read(job)

    def now(self) -> datetime:
        """Return service time."""
        return self._clock.now()

    def act(self, job: Callable[[Services, Transaction], T]) -> T:
        """Run a use case in a transaction; its effect can be seen when this returns."""
        return self.do(self._services.run_whole(partial(job, self._services)))

    def act_alone(self, job: Callable[[Services, Transact], T]) -> T:
        """Run a use case that opens transactions of its own, such as one that turns the clock."""
        return self.do(self._services.run_whole(Alone(partial(job, self._services))))

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done on its loop, and wait for it; a refusal is raised as if it came from here."""
        try:
            return self.begin(work).result()
        except (ForewarnError, ValueError, TimeoutError) as refusal:
            # It says what is wrong with the test. The way there, on another thread, says nothing to it.
            raise refusal.with_traceback(None) from None

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Have something done on its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def open_endpoint(self, machine: str) -> str:
        """Return the URL at which the guest of a machine asks, as long as this runs."""
        return self.do(self._open_endpoint(machine))

    async def _open_endpoint(self, machine: str) -> str:
        self._rehearsal.admit(await self._private.machine_id(machine), machine)
        return await self._private.open_endpoint(machine)

    def account(self, machine: str) -> GuestAccount:
        """Return what the guest of a machine has done."""
        return self._ledger.accounts[machine]

    def put(self, fault: Fault) -> None:
        """Let guests meet a fault; in force when this returns."""
        self.do(self._meet(lambda: self._faults.update({fault.number: fault})))

    def lift(self, fault: Fault) -> None:
        """End a fault; no matter if it has ended."""
        self.do(self._meet(lambda: self._faults.pop(fault.number, None)))

    async def _meet(self, change: Callable[[], object]) -> None:
        change()
        self._rehearsal.meet(tuple(self._faults.values()))

    def note(self, who: str, what: str, *, at: datetime | None = None) -> None:
        """Add a line to the log, with the service time since the start."""
        minutes, seconds = divmod(int(self._clock.elapsed().total_seconds()), 60)
        self.log.append(f"{minutes:3} m {seconds:02} s  {who}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    service: FleetService
    over: asyncio.Event
    loop: asyncio.AbstractEventLoop


@contextmanager
def running_service() -> Iterator[FleetService]:
    """Run a service with nothing but hosts on a thread of its own, and stop it."""
    opened: Future[_Running] = Future()
    # A daemon: whatever happens, the test run must come to its end.
    thread = threading.Thread(target=_run, args=(opened,), name="forewarn-testing", daemon=True)
    thread.start()
    running = opened.result()
    try:
        yield running.service
    finally:
        running.loop.call_soon_threadsafe(running.over.set)
        thread.join()


def _run(opened: "Future[_Running]") -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(_serve(opened))
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error)  # the test's thread gets it, whatever it is


async def _serve(opened: "Future[_Running]") -> None:
    fleet = FleetSpec(hosts=tuple(HostSpec(name=HostName(name)) for name in HOSTS))
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="forewarn-testing-"))
        private = await stack.enter_async_context(private_service(Path(folder), fleet=fleet, clock="manual"))
        service = FleetService(private, stack)
        opened.set_result(_Running(service=service, over=over, loop=asyncio.get_running_loop()))
        await over.wait()
