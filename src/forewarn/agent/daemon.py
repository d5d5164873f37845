"""The agent program: read the config, find out who this machine is, watch, and stop when told to."""

import asyncio
import contextlib
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from forewarn.agent.agent_log import Voice, speak
from forewarn.agent.care.agent_context import Desk
from forewarn.agent.care.endpoints import Endpoints
from forewarn.agent.care.launch import file_stem
from forewarn.agent.care.watcher import Agent
from forewarn.agent.journal.journal_file import Journal, Notebook, lock_of, machine_of, read
from forewarn.agent.programs.runs import Runs
from forewarn.agent.reporting.agent_state import Present
from forewarn.agent.reporting.probe_server import Probes
from forewarn.agent.reporting.systemd import Systemd
from forewarn.agent.setup.agent_config import Config
from forewarn.agent.setup.options import Options
from forewarn.agent.setup.summary import problems
from forewarn.clock import SystemClock
from forewarn.core.errors import Conflict, Invalid
from forewarn.sdk import platform
from forewarn.sdk.errors import GuestError
from forewarn.sdk.instances import Instance
from forewarn.sdk.replies import backoff

STATUS_SECONDS = 30.0
# For the endpoint to say who this machine is, before what a journal says is believed to be about it.
INTRODUCTION_SECONDS = 5.0


def run(options: Options) -> None:
    """Run until SIGTERM or SIGINT."""
    config = options.load()
    voice = speak(config.agent.log, secrets=config.secrets)
    with contextlib.ExitStack() as stack:
        if not options.dry_run:
            stack.enter_context(_alone(config.agent.journal))
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(Program(options, config, voice).run())


@contextlib.contextmanager
def _alone(journal: Path) -> Any:
    """Be the only agent on a journal."""
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        held = platform.hold_file(lock_of(journal))
    except OSError as error:
        raise Invalid(f"journal {journal} cannot be written: {error.strerror}") from None
    if held is None:
        raise Conflict(f"another agent runs with the journal {journal}")
    with held:
        yield


class Program:
    """One run of the agent."""

    def __init__(self, options: Options, config: Config, voice: Voice) -> None:
        self._options = options
        self._voice = voice
        self._clock = SystemClock()
        self._systemd = Systemd(os.environ, pid=os.getpid())
        self._endpoints = Endpoints(config.agent.endpoint, speed=options.speed)
        self._present = Present(
            config=config,
            endpoints=self._endpoints,
            now=self._clock.now,
            began=self._clock.now(),
            dry=options.dry_run,
        )
        self._called = ""  # what this machine was when the journal was written

    async def run(self) -> None:
        """Serve until told to stop."""
        stopping = asyncio.Event()
        platform.on_signal("SIGTERM", stopping.set)
        platform.on_signal("SIGINT", stopping.set)
        platform.on_signal("SIGHUP", self._reload)
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
                await self._endpoints.close()
                self._present.memory.close()
            for task in done:
                task.result()
        self._voice.say("stopped; what is prepared stays so, and handlers that run go on")

    async def _listen(self, stack: AsyncExitStack) -> None:
        """Let others look."""
        if self._present.config.agent.listen is None:
            return
        probes = Probes(self._present.pages())
        host, port = self._present.config.agent.listen
        try:
            host, port = await probes.start(host, port)
        except OSError as error:
            raise Conflict(f"agent.listen: {host}:{port} cannot be opened: {error.strerror}") from None
        stack.push_async_callback(probes.stop)
        self._voice.say("metrics and probes", listen=f"{host}:{port}")

    async def _watch(self) -> None:
        self._peek()
        dry = " (dry run: nothing is done)" if self._options.dry_run else ""
        self._voice.say(
            f"started{dry}", handlers=len(self._present.config.handlers), config=str(self._options.config)
        )
        for problem in (*problems(self._present.config), *self._present.config.remarks):
            self._voice.warn(problem)
        introduction = asyncio.create_task(self._introduced())
        try:
            # A copy of a disk has another's journal; but an endpoint may be away for long.
            await asyncio.wait([introduction], timeout=INTRODUCTION_SECONDS)
            if not introduction.done():
                self._go_on()
            worker = await self._at_work_as(await introduction)
            self._voice.say(
                "watching",
                machine=worker.machine,
                endpoint=self._endpoints.url,
                open=len(self._present.memory.cases),
            )
            await worker.run()
        finally:
            introduction.cancel()
            await asyncio.gather(introduction, return_exceptions=True)
            if self._present.agent is not None:
                await self._present.agent.stop()

    async def _introduced(self) -> Instance:
        """Find the endpoint, and be told who this machine is."""
        await self._endpoints.find(trouble=self._waits)
        return await self._identity()

    def _go_on(self) -> None:
        """Go on with what a former agent has begun, by its journal alone."""
        name = self._present.config.agent.machine or self._called
        if name and self._present.memory.cases and not self._options.dry_run:
            self._voice.say(
                "going on with what was begun", machine=name, open=len(self._present.memory.cases)
            )
            self._employ(Instance(name=name)).go_on()

    async def _at_work_as(self, instance: Instance) -> Agent:
        """Know who this machine is; what was gone on with as another is let go of."""
        memory, agent = self._present.memory, self._present.agent
        if agent is not None and isinstance(memory, Journal):
            if agent.machine == instance.name and memory.is_of(instance.vm_id):
                return agent
            await agent.stop()
            memory.close()
        return self._employ(instance)

    def _employ(self, instance: Instance) -> Agent:
        """Open the journal, and let an agent work by it."""
        path = self._present.config.agent.journal
        runs = Runs(path.with_name(f"{path.name}.runs"))
        if self._options.dry_run:
            # The journal, and the programs that it names, are those of the agent that really runs.
            self._present.memory = Notebook()
        else:
            self._present.memory = Journal(
                path, vm_id=instance.vm_id, machine=instance.name, warn=self._voice.warn
            )
            kept = {file_stem(id_) for id_ in self._present.memory.cases}
            runs.forget(lambda name: name.partition(".")[0] not in kept)
        desk = Desk(
            config=self._present.config,
            machine=instance.name,
            memory=self._present.memory,
            endpoint=self._endpoints,
            runs=runs,
            voice=self._voice,
            now=self._clock.now,
            meter=self._present.meter,
            dry=self._options.dry_run,
            speed=self._options.speed,
        )
        agent = self._present.agent = Agent(desk, self._endpoints)
        return agent

    async def _identity(self) -> Instance:
        """Find out who this machine is; one that was given a name needs no more, if nobody tells."""
        name, failures = self._present.config.agent.machine, 0
        while True:
            try:
                instance = await self._told_who(name)
            except GuestError as error:
                failures += 1
                self._waits(error)
                await asyncio.sleep(backoff(failures))
            else:
                self._waits(None)
                return instance if name is None else replace(instance, name=name)

    async def _told_who(self, name: str | None) -> Instance:
        try:
            return await self._endpoints.instance()
        except GuestError as error:
            if name is None:
                raise
            await self._endpoints.hear()
            self._voice.warn(f"this machine's id is not known, the journal is not bound to it: {error}")
            return Instance(name=name)

    def _waits(self, error: GuestError | None) -> None:
        """Say once what is awaited before it can watch."""
        if error is not None and self._present.awaited is None:
            self._voice.warn(f"waiting: {error}")
        self._present.awaited = None if error is None else str(error)

    def _peek(self) -> None:
        """Know what was prepared before the endpoint answers: a load balancer asks before that."""
        with contextlib.suppress(OSError):
            whole = self._present.config.agent.journal.read_bytes()
            self._present.memory.cases = read(whole)[1]
            self._called = machine_of(whole)

    async def _report(self) -> None:
        """Tell systemd that the loop goes on, and what it does."""
        seconds = self._systemd.watchdog_seconds or STATUS_SECONDS
        while True:
            self._systemd.alive()
            self._systemd.status(self._present.in_words())
            await asyncio.sleep(seconds)

    def _reload(self) -> None:
        """Read the config again; one that is not sound changes nothing."""
        self._systemd.reloading()
        try:
            config = self._options.load()
        except Invalid as refusal:
            self._voice.warn(f"the config stays as it was: {refusal}")
        else:
            self._take_if_complete(config)
        self._systemd.ready(self._present.in_words())

    def _take_if_complete(self, config: Config) -> None:
        """Take a config, unless somebody is missing in it who has to undo what it has prepared."""
        for case in self._present.memory.cases.values():
            for name in case.touched():
                if config.handler(name) is None and not case.recovered(name):
                    self._voice.warn(
                        f"the config stays as it was: the new one has no handler {name!r}, which has "
                        f"prepared for a {case.event.type} and has to recover; reload once that is over"
                    )
                    return
        self._take(config)

    def _take(self, config: Config) -> None:
        old, new = self._present.config.agent, config.agent
        for name in ("endpoint", "machine", "journal", "listen"):
            if getattr(old, name) != getattr(new, name):
                self._voice.warn(f"agent.{name} takes effect when the agent is started again")
        self._present.config = config
        self._voice = speak(new.log, secrets=config.secrets)
        if self._present.agent is not None:
            self._present.agent.reload(config)
        self._voice.say("the config was read again", handlers=len(config.handlers))
        for problem in (*problems(config), *config.remarks):
            self._voice.warn(problem)
