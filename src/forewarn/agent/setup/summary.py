"""Describe a config: the actions for each type of event, and the problems in this machine."""

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

_CONDITIONS = {
    Approver.SELF: "if it names this machine alone",
    Approver.FIRST: "if this machine is the first it names; each next machine after another 30 s",
    Approver.ANY: "also if it names other machines",
}
# The minimum notices of Azure; for Terminate, the shortest that a user may choose.
_MINIMUM_NOTICES = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSummary:
    """The agent's actions for one type of event."""

    type: EventType
    prepare: tuple[str, ...]
    approve: str
    recover: tuple[str, ...]
    short_notice: int | None  # seconds, if handlers may take longer than the notice

    @property
    def done(self) -> tuple[object, ...]:
        """The actions."""
        return self.prepare, self.approve, self.recover


def explain(config: Config) -> tuple[TypeSummary, ...]:
    """Return the actions for each type of event, with secrets redacted."""
    sees_hints = config.agent.api_version == PREVIEW_VERSION
    return tuple(_summary(config, type_) for type_ in EventType if sees_hints or type_ not in HINTS)


def grouped(explained: Sequence[TypeSummary]) -> list[tuple[TypeSummary, ...]]:
    """Group the types of events that have the same actions."""
    groups: dict[tuple[object, ...], list[TypeSummary]] = {}
    for each in explained:
        groups.setdefault(each.done, []).append(each)
    return [tuple(group) for group in groups.values()]


def short_notice_warning(group: Sequence[TypeSummary]) -> str | None:
    """Return a warning about types that may start before all handlers are done."""
    short = [
        f"{each.type} may come {each.short_notice} s after its notice"
        for each in group
        if each.short_notice is not None
    ]
    return f"{', '.join(short)}: it does not wait for handlers that take longer" if short else None


def surroundings(agent: AgentSettings) -> list[str]:
    """Describe the endpoint, machine, journal and port of an agent."""
    where = " or ".join(agent.endpoint) or "discovered"
    who = agent.machine or "from the endpoint"
    listens = f"{agent.listen[0]}:{agent.listen[1]}" if agent.listen else "none"
    return [
        f"Endpoint: {where}. Machine: {who}. Journal: {agent.journal}.",
        f"Metrics and probes: {listens}. A missing event counts as over after {agent.settle:g} s.",
        f"Event of an unknown type: every handler prepares, and it is {_unknown(agent)}.",
    ]


def recovery_times(config: Config) -> str:
    """Describe when handlers recover."""
    at_boot = [each.name for each in config.handlers if each.recover_at is RecoverAt.BOOT]
    if not at_boot:
        return "Recovery: when the event ends."
    types = " or ".join(sorted(RESTARTING))
    return f"Recovery: at boot after a {types} ({', '.join(at_boot)}), otherwise when the event ends."


def _unknown(agent: AgentSettings) -> str:
    allowed = agent.approve_unknown and agent.approve is not ApprovePolicy.NEVER
    return "approved like other events" if allowed else "not approved"


def problems(config: Config) -> list[str]:
    """Return the problems of handlers in this machine."""
    found = [f"{handler.name}: {why}" for handler in config.handlers for why in handler.does.problems()]
    return [redacted(problem, config.secrets) for problem in found]


def _summary(config: Config, type_: EventType) -> TypeSummary:
    every = () if type_ in HINTS else (None,)  # recommendations are for handlers that list them
    meant = [each for each in config.handlers if each.when.types in every or type_ in (each.when.types or ())]
    notice = int(_MINIMUM_NOTICES.notice(type_).total_seconds())
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
        "a failure prevents the approval"
        if handler.on_failure is OnFailure.HOLD
        else "a failure does not prevent the approval"
    )
    described = handler.does.describe(Side.PREPARE)
    return f"{handler.name}: {described}{conditions} (at most {handler.timeout:g} s; {failing})"


def _approves(agent: AgentSettings, handlers: Sequence[Handler]) -> str:
    if agent.approve is ApprovePolicy.NEVER:
        return "never"
    when = "once all of these are ready" if handlers else "at once"
    which = ", if a user has requested it" if agent.approve is ApprovePolicy.USER_EVENTS else ""
    return f"{when}{which}, {_CONDITIONS[agent.approver]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """Problems that prevent the start of the agent, and remarks."""

    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def preflight(agent: AgentSettings) -> Preflight:
    """Check the journal's folder and the port before the agent starts."""
    refused = _unwritable(agent.journal)
    taken = _taken(agent.listen)
    if _is_held(agent.journal):
        # The running agent probably holds the port too.
        running = f"an agent already uses the journal {agent.journal}: another one would not start"
        return Preflight(problems=refused, remarks=(running, *taken))
    return Preflight(problems=(*refused, *taken))


def _is_held(journal: Path) -> bool:
    lock = lock_of(journal)
    try:
        return lock.exists() and system.is_held(lock)
    except OSError:
        return False


def _unwritable(journal: Path) -> tuple[str, ...]:
    """Return why the journal cannot be written; its folder may not exist yet."""
    if journal.is_dir():
        return (f"journal: {journal} is a folder",)
    folder = next(each for each in journal.absolute().parents if each.exists())
    if not folder.is_dir():
        return (f"journal: {journal} cannot be written: {folder} is not a folder",)
    if os.access(folder, os.W_OK | os.X_OK) and (not journal.exists() or os.access(journal, os.W_OK)):
        return ()
    return (f"journal: {journal} cannot be written by this user; run the check as the user of the agent",)


def _taken(listen: tuple[str, int] | None) -> tuple[str, ...]:
    if listen is None:
        return ()
    host, port = listen
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            # As servers do, ignore connections that have just ended.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return (f"listen: {host}:{port} cannot be opened: {error.strerror}",)
    return ()
