"""The agent's main program: read the config, learn the machine's identity, watch events until a signal."""

import asyncio
import contextlib
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.agent.agent_log import AgentLog, LogForm, start_logging
from forewarn.agent.care.agent_context import AgentContext
from forewarn.agent.care.attempts import file_stem
from forewarn.agent.care.current_endpoint import CurrentEndpoint
from forewarn.agent.care.watcher import EventWatcher
from forewarn.agent.journal.journal_file import DryRunJournal, Journal, lock_of, machine_of, read
from forewarn.agent.probes import AgentState, ProbeServer
from forewarn.agent.setup import agent_config as configs
from forewarn.agent.setup.agent_config import Config
from forewarn.agent.setup.summary import problems
from forewarn.clock import SystemClock
from forewarn.core.errors import Conflict, Invalid
from forewarn.platform import system
from forewarn.platform.systemd import Systemd
from forewarn.programs.kept_program import KeptPrograms
from forewarn.sdk.answer_reading import backoff
from forewarn.sdk.guest_errors import GuestError
from forewarn.sdk.instances import Instance
from forewarn.wire.fields import Reader

STATUS_SECONDS = 30.0
# The wait for the machine's identity before the agent trusts the journal without it.
IDENTITY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the command line, which override the config."""

    config: Path
    dry_run: bool = False
    speed: float = 1.0  # of the endpoint's clock; differs from 1 in rehearsals only
    log: LogForm | None = None
    endpoint: str | None = None
    machine: str | None = None
    journal: Path | None = None
    listen: bool = True

    def load(self) -> Config:
        """Read the config and apply the options."""
        config = configs.load(self.config)
        agent = config.agent
        if self.endpoint is not None:
            agent = replace(agent, endpoint=_flag("--endpoint", configs.endpoints, self.endpoint))
        if self.machine is not None:
            agent = replace(agent, machine=_flag("--machine", configs.machine, self.machine))
        agent = replace(
            agent,
            log=self.log or agent.log,
            journal=self.journal or agent.journal,
            listen=agent.listen if self.listen else None,
        )
        return replace(config, agent=agent)


def _flag(name: str, read: Reader, value: str) -> Any:
    """Read a flag as the config field of that name; errors name the flag."""
    try:
        return read(value)
    except Invalid as refusal:
        raise Invalid(f"{name}: {refusal}") from None


def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT."""
    config = options.load()
    log = start_logging(config.agent.log, secrets=config.secrets)
    with contextlib.ExitStack() as stack:
        if not options.dry_run:
            stack.enter_context(_locked(config.agent.journal))
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(AgentDaemon(options, config, log).run())


@contextlib.contextmanager
def _locked(journal: Path) -> Any:
    """Hold the lock of a journal, which only one agent may use."""
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        held = system.hold_file(lock_of(journal))
    except OSError as error:
        raise Invalid(f"journal {journal} cannot be written: {error.strerror}") from None
    if held is None:
        raise Conflict(f"another agent already uses the journal {journal}")
    with held:
        yield


class AgentDaemon:
    """One run of the agent."""

    def __init__(self, options: Options, config: Config, log: AgentLog) -> None:
        self._options = options
        self._log = log
        self._clock = SystemClock()
        self._systemd = Systemd(os.environ, pid=os.getpid())
        self._endpoint = CurrentEndpoint(
            config.agent.endpoint, api_version=config.agent.api_version, speed=options.speed
        )
        self._state = AgentState(
            config=config,
            endpoint=self._endpoint,
            now=self._clock.now,
            began=self._clock.now(),
            dry=options.dry_run,
        )
        self._name_in_journal = ""

    async def run(self) -> None:
        """Watch until SIGTERM or SIGINT; SIGHUP reloads the config."""
        stopping = asyncio.Event()
        system.on_signal("SIGTERM", stopping.set)
        system.on_signal("SIGINT", stopping.set)
        system.on_signal("SIGHUP", self._reload)
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            tasks = [asyncio.create_task(each) for each in (self._watch(), self._report(), stopping.wait())]
            self._systemd.ready("starting")
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._systemd.stopping()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._endpoint.close()
                self._state.journal.close()
            for task in done:
                task.result()
        self._log.info("stopped; preparations stay in effect, and running handlers go on")

    async def _listen(self, stack: AsyncExitStack) -> None:
        """Serve metrics and probes."""
        if self._state.config.agent.listen is None:
            return
        probes = ProbeServer(self._state.pages())
        host, port = self._state.config.agent.listen
        try:
            host, port = await probes.start(host, port)
        except OSError as error:
            raise Conflict(f"agent.listen: {host}:{port} cannot be opened: {error.strerror}") from None
        stack.push_async_callback(probes.stop)
        self._log.info("metrics and probes", listen=f"{host}:{port}")

    async def _watch(self) -> None:
        self._read_journal()
        dry = " (dry run: the agent changes nothing)" if self._options.dry_run else ""
        self._log.info(
            f"started{dry}", handlers=len(self._state.config.handlers), config=str(self._options.config)
        )
        for problem in (*problems(self._state.config), *self._state.config.remarks):
            self._log.warn(problem)
        identity = asyncio.create_task(self._identity())
        try:
            # A copied disk has a foreign journal, so wait for the identity. An endpoint may be away for long.
            await asyncio.wait([identity], timeout=IDENTITY_SECONDS)
            if not identity.done():
                self._resume()
            watcher = await self._watcher_of(await identity)
            self._log.info(
                "watching",
                machine=watcher.machine,
                endpoint=self._endpoint.url,
                open=len(self._state.journal.tracked_events),
            )
            await watcher.run()
        finally:
            identity.cancel()
            await asyncio.gather(identity, return_exceptions=True)
            if self._state.watcher is not None:
                await self._state.watcher.stop()

    def _resume(self) -> None:
        """Resume the work of an earlier agent from the journal alone."""
        name = self._state.config.agent.machine or self._name_in_journal
        if name and self._state.journal.tracked_events and not self._options.dry_run:
            self._log.info(
                "resuming the work of an earlier agent",
                machine=name,
                open=len(self._state.journal.tracked_events),
            )
            self._new_watcher(Instance(name=name)).resume()

    async def _watcher_of(self, instance: Instance) -> EventWatcher:
        """Return the watcher for this machine; stop a watcher that resumed a foreign journal."""
        journal, watcher = self._state.journal, self._state.watcher
        if watcher is not None and isinstance(journal, Journal):
            if watcher.machine == instance.name and journal.is_of(instance.vm_id):
                return watcher
            await watcher.stop()
            journal.close()
        return self._new_watcher(instance)

    def _new_watcher(self, instance: Instance) -> EventWatcher:
        """Open the journal and create a watcher."""
        path = self._state.config.agent.journal
        runs = KeptPrograms(path.with_name(f"{path.name}.runs"))
        if self._options.dry_run:
            # The journal on disk and its programs belong to the real agent.
            self._state.journal = DryRunJournal()
        else:
            self._state.journal = Journal(
                path, vm_id=instance.vm_id, machine=instance.name, warn=self._log.warn
            )
            kept = {file_stem(id_) for id_ in self._state.journal.tracked_events}
            runs.forget(lambda name: name.partition(".")[0] not in kept)
        context = AgentContext(
            config=self._state.config,
            machine=instance.name,
            journal=self._state.journal,
            endpoint=self._endpoint,
            runs=runs,
            log=self._log,
            now=self._clock.now,
            metrics=self._state.metrics,
            dry=self._options.dry_run,
            speed=self._options.speed,
        )
        watcher = self._state.watcher = EventWatcher(context, self._endpoint)
        return watcher

    async def _identity(self) -> Instance:
        """Find the endpoint and get this machine's identity; a name in the config is enough."""
        await self._endpoint.find(trouble=self._waits)
        name, failures = self._state.config.agent.machine, 0
        while True:
            try:
                instance = await self._instance(name)
            except GuestError as error:
                failures += 1
                self._waits(error)
                await asyncio.sleep(backoff(failures))
            else:
                self._waits(None)
                return instance if name is None else replace(instance, name=name)

    async def _instance(self, name: str | None) -> Instance:
        try:
            return await self._endpoint.instance()
        except GuestError as error:
            if name is None:
                raise
            await self._endpoint.check()
            self._log.warn(f"this machine's id is unknown, so the journal is not bound to it: {error}")
            return Instance(name=name)

    def _waits(self, error: GuestError | None) -> None:
        """Log once why the agent cannot watch yet."""
        if error is not None and self._state.awaited is None:
            self._log.warn(f"waiting: {error}")
        self._state.awaited = None if error is None else str(error)

    def _read_journal(self) -> None:
        """Read the journal before the endpoint answers, because load balancers check `/readyz` already."""
        with contextlib.suppress(OSError):
            whole = self._state.config.agent.journal.read_bytes()
            self._state.journal.tracked_events = read(whole)[1]
            self._name_in_journal = machine_of(whole)

    async def _report(self) -> None:
        """Send watchdog messages and the status to systemd."""
        seconds = self._systemd.watchdog_seconds or STATUS_SECONDS
        while True:
            self._systemd.alive()
            self._systemd.status(self._state.in_words(), events=len(self._state.journal.tracked_events))
            await asyncio.sleep(seconds)

    def _reload(self) -> None:
        """Reload the config; an invalid config changes nothing."""
        self._systemd.reloading()
        try:
            self._take_if_complete(self._options.load())
        except Invalid as refusal:
            self._log.warn(f"the old config stays in effect: {refusal}")
        except Exception as error:  # noqa: BLE001 - the agent must go on
            self._log.warn(f"the old config stays in effect: {type(error).__name__}: {error}")
        finally:
            self._systemd.ready(self._state.in_words())

    def _take_if_complete(self, config: Config) -> None:
        """Use a new config, unless it lacks a handler that must still recover."""
        for tracked in self._state.journal.tracked_events.values():
            for name in tracked.touched():
                if self._lacks(config, name) and not tracked.recovered(name):
                    self._log.warn(
                        f"the old config stays in effect: the new config lacks handler {name!r}, which has "
                        f"prepared for a {tracked.event.type} and must recover; reload after the event"
                    )
                    return
        self._take(config)

    def _lacks(self, config: Config, name: str) -> bool:
        """Return whether a config lacks a handler that may have to recover."""
        known = self._state.config.handler(name)
        return config.handler(name) is None and not (known is not None and known.only_notifies)

    def _take(self, config: Config) -> None:
        old, new = self._state.config.agent, config.agent
        for name in ("endpoint", "api_version", "machine", "journal", "listen"):
            if getattr(old, name) != getattr(new, name):
                self._log.warn(f"agent.{name} takes effect after a restart of the agent")
        self._state.config = config
        self._log = start_logging(new.log, secrets=config.secrets)
        if self._state.watcher is not None:
            self._state.watcher.reload(config)
        self._log.info("reloaded the config", handlers=len(config.handlers))
        for problem in (*problems(config), *config.remarks):
            self._log.warn(problem)
