"""A config in words: for each type of event, what is run, approved and undone; and what would fail here."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.agent.agent_log import redacted
from forewarn.agent.handling import Side
from forewarn.agent.journal.journal_file import lock_of
from forewarn.agent.setup.agent_config import AgentSettings, Config
from forewarn.agent.setup.handler import RESTARTING, Handler, OnFailure, RecoverAt
from forewarn.agent.verdicts import ApprovePolicy, Approver
from forewarn.core.basic_types import HINTS, EventType
from forewarn.core.policy import Policy
from forewarn.platform import system
from forewarn.sdk.documents import PREVIEW_VERSION

_WHOSE = {
    Approver.SELF: "if it names this machine alone",
    Approver.FIRST: "if this machine is the first it names, or those before it stay silent for 30 s each",
    Approver.ANY: "whoever else it names",
}


# The least notice that Azure promises; for Terminate the shortest that a user may choose.
_PROMISES = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSummary:
    """What happens for one type of event."""

    type: EventType
    prepare: tuple[str, ...]
    approve: str
    recover: tuple[str, ...]
    short_notice: int | None  # seconds, where handlers may take longer than it lasts

    @property
    def done(self) -> tuple[object, ...]:
        """What is done, whatever the type."""
        return self.prepare, self.approve, self.recover


def explain(config: Config) -> tuple[TypeSummary, ...]:
    """Return what happens for every type that the agent is told of, without secrets."""
    told = config.agent.api_version == PREVIEW_VERSION
    return tuple(_summary(config, type_) for type_ in EventType if told or type_ not in HINTS)


def grouped(explained: Sequence[TypeSummary]) -> list[tuple[TypeSummary, ...]]:
    """Group the types for which the same is done."""
    alike: dict[tuple[object, ...], list[TypeSummary]] = {}
    for each in explained:
        alike.setdefault(each.done, []).append(each)
    return [tuple(group) for group in alike.values()]


def short_notice_warning(alike: Sequence[TypeSummary]) -> str | None:
    """Return which types may start before all is done that is done for them."""
    short = [
        f"{each.type} may come {each.short_notice} s after its notice"
        for each in alike
        if each.short_notice is not None
    ]
    return f"{', '.join(short)}: what takes longer is not waited for" if short else None


def surroundings(agent: AgentSettings) -> list[str]:
    """Return in words which endpoint, machine, journal and port an agent has."""
    where = " or ".join(agent.endpoint) or "the one found in this machine"
    who = agent.machine or "as the endpoint says"
    listens = f"{agent.listen[0]}:{agent.listen[1]}" if agent.listen else "none"
    return [
        f"Endpoint: {where}. Machine: {who}. Journal: {agent.journal}.",
        f"Metrics and probes: {listens}. An event that is missing is over after {agent.settle:g} s.",
        f"A type of event that is not known here: every handler prepares, and it is {_unknown(agent)}.",
    ]


def recovery_times(config: Config) -> str:
    """Return in words which handlers recover at boot."""
    at_boot = [each.name for each in config.handlers if each.recover_at is RecoverAt.BOOT]
    if not at_boot:
        return "Recovery: when the event ends."
    types = " or ".join(sorted(RESTARTING))
    return f"Recovery: at boot after a {types} ({', '.join(at_boot)}), otherwise when the event ends."


def _unknown(agent: AgentSettings) -> str:
    allowed = agent.approve_unknown and agent.approve is not ApprovePolicy.NEVER
    return "approved as others are" if allowed else "not approved"


def problems(config: Config) -> list[str]:
    """Return what stands in the way of handlers in this machine."""
    found = [f"{handler.name}: {why}" for handler in config.handlers for why in handler.does.problems()]
    return [redacted(problem, config.secrets) for problem in found]


def _summary(config: Config, type_: EventType) -> TypeSummary:
    every = () if type_ in HINTS else (None,)  # what only recommends something is for those that name it
    meant = [each for each in config.handlers if each.when.types in every or type_ in (each.when.types or ())]
    notice = int(_PROMISES.notice(type_).total_seconds())
    longest = max((each.timeout for each in meant), default=0)
    return TypeSummary(
        type=type_,
        short_notice=notice if longest > notice else None,
        prepare=tuple(
            redacted(_prepares(handler), config.secrets)
            for handler in meant
            if handler.does.describe(Side.PREPARE)
        ),
        approve="never" if type_ in HINTS else _approves(config.agent, meant),
        recover=tuple(
            redacted(f"{handler.name}: {described}", config.secrets)
            for handler in reversed(meant)
            if (described := handler.does.describe(Side.RECOVER))
        ),
    )


def _prepares(handler: Handler) -> str:
    conditions = "".join(f", {each}" for each in handler.when.in_words())
    failing = (
        "a failure keeps it from being approved"
        if handler.on_failure is OnFailure.HOLD
        else "a failure changes nothing"
    )
    described = handler.does.describe(Side.PREPARE)
    return f"{handler.name}: {described}{conditions} (at most {handler.timeout:g} s; {failing})"


def _approves(agent: AgentSettings, handlers: Sequence[Handler]) -> str:
    if agent.approve is ApprovePolicy.NEVER:
        return "never"
    when = "once all of these are ready" if handlers else "at once"
    which = ", if a user has asked for it" if agent.approve is ApprovePolicy.USER_EVENTS else ""
    return f"{when}{which}, {_WHOSE[agent.approver]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What was found: what would make it refuse, and what is worth knowing."""

    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def preflight(agent: AgentSettings) -> Preflight:
    """Check what would make the agent refuse to start here: the journal's folder and the port."""
    refused = _unwritable(agent.journal)
    taken = _taken(agent.listen)
    if _is_held(agent.journal):
        # It holds the port too, most likely.
        running = f"an agent runs with the journal {agent.journal} now: another one is refused"
        return Preflight(problems=refused, remarks=(running, *taken))
    return Preflight(problems=(*refused, *taken))


def _is_held(journal: Path) -> bool:
    lock = lock_of(journal)
    try:
        return lock.exists() and system.is_held(lock)
    except OSError:
        return False


def _unwritable(journal: Path) -> tuple[str, ...]:
    """Return why the journal cannot be written; of a folder that does not exist yet, the one above counts."""
    if journal.is_dir():
        return (f"journal: {journal} is a folder",)
    folder = next(each for each in journal.absolute().parents if each.exists())
    if not folder.is_dir():
        return (f"journal: {journal} cannot be written: {folder} is no folder",)
    if os.access(folder, os.W_OK | os.X_OK) and (not journal.exists() or os.access(journal, os.W_OK)):
        return ()
    return (
        f"journal: {journal} cannot be written by the user who asks; check as the one who runs the agent",
    )


def _taken(listen: tuple[str, int] | None) -> tuple[str, ...]:
    if listen is None:
        return ()
    host, port = listen
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As servers do: a connection that ended a moment ago does not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return (f"listen: {host}:{port} cannot be opened: {error.strerror}",)
    return ()
