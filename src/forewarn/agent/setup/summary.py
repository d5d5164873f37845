"""What a config would do, in words: for each type of event, what is run, what is approved, what is undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from forewarn.agent.agent_log import hidden
from forewarn.agent.approval import Approve, Approver
from forewarn.agent.handling import Side
from forewarn.agent.setup.agent_config import Config, Settings
from forewarn.agent.setup.handler import Handler, OnFailure
from forewarn.core.words import EventType

_WHOSE = {
    Approver.SELF: "if it names this machine alone",
    Approver.FIRST: "if this machine is the first it names, or those before it stay silent for 30 s each",
    Approver.ANY: "whoever else it names",
}


# The least notice that Azure promises; for Terminate the shortest that a user may choose.
_NOTICE_SECONDS = {
    EventType.FREEZE: 900,
    EventType.REBOOT: 900,
    EventType.REDEPLOY: 600,
    EventType.PREEMPT: 30,
    EventType.TERMINATE: 300,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
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


def explain(config: Config) -> tuple[Explained, ...]:
    """Say what happens for every type, without secrets."""
    return tuple(_explained(config, type_) for type_ in EventType)


def grouped(explained: Sequence[Explained]) -> list[tuple[Explained, ...]]:
    """Put types together for which the same is done."""
    alike: dict[tuple[object, ...], list[Explained]] = {}
    for each in explained:
        alike.setdefault(each.done, []).append(each)
    return [tuple(group) for group in alike.values()]


def hurry(alike: Sequence[Explained]) -> str | None:
    """Say which types may come before all is done that is done for them."""
    short = [
        f"{each.type} may come {each.short_notice} s after its notice"
        for each in alike
        if each.short_notice is not None
    ]
    return f"{', '.join(short)}: what takes longer is not waited for" if short else None


def surroundings(agent: Settings) -> list[str]:
    """Say where the agent looks and what it keeps."""
    where = " or ".join(agent.endpoint) or "the one found in this machine"
    who = agent.machine or "as the endpoint says"
    listens = f"{agent.listen[0]}:{agent.listen[1]}" if agent.listen else "none"
    return [
        f"Endpoint: {where}. Machine: {who}. Journal: {agent.journal}.",
        f"Metrics and probes: {listens}.",
    ]


def problems(config: Config) -> list[str]:
    """Say what stands in the way of handlers in this machine."""
    found = [f"{handler.name}: {why}" for handler in config.handlers for why in handler.does.problems()]
    return [hidden(problem, config.secrets) for problem in found]


def _explained(config: Config, type_: EventType) -> Explained:
    meant = [each for each in config.handlers if each.when.types is None or type_ in each.when.types]
    notice, longest = _NOTICE_SECONDS[type_], max((each.timeout for each in meant), default=0)
    return Explained(
        type=type_,
        short_notice=notice if longest > notice else None,
        prepare=tuple(
            hidden(_prepares(handler), config.secrets)
            for handler in meant
            if handler.does.describe(Side.PREPARE)
        ),
        approve=_approves(config.agent, meant),
        recover=tuple(
            hidden(f"{handler.name}: {told}", config.secrets)
            for handler in reversed(meant)
            if (told := handler.does.describe(Side.RECOVER))
        ),
    )


def _prepares(handler: Handler) -> str:
    conditions = "".join(f", {each}" for each in handler.when.words())
    failing = (
        "a failure keeps it from being approved"
        if handler.on_failure is OnFailure.HOLD
        else "a failure changes nothing"
    )
    told = handler.does.describe(Side.PREPARE)
    return f"{handler.name}: {told}{conditions} (at most {handler.timeout:g} s; {failing})"


def _approves(agent: Settings, handlers: Sequence[Handler]) -> str:
    if agent.approve is Approve.NEVER:
        return "never"
    when = "once all of these are ready" if handlers else "at once"
    which = ", if a user has asked for it" if agent.approve is Approve.USER_EVENTS else ""
    return f"{when}{which}, {_WHOSE[agent.approver]}"
