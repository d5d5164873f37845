"""What a config would do, in words: for each type of event, what is run, what is approved, what is undone."""

from collections.abc import Sequence
from dataclasses import dataclass

from forewarn.agent.approval import Approve, Approver
from forewarn.agent.config import Config, Settings
from forewarn.agent.handler import Handler, OnFailure
from forewarn.agent.handling import Side
from forewarn.agent.voice import hidden
from forewarn.core.words import EventType

_WHOSE = {
    Approver.SELF: "if it names this machine alone",
    Approver.FIRST: "if this machine is the first it names, or those before it stay silent for 30 s each",
    Approver.ANY: "whoever else it names",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What happens for one type of event."""

    type: EventType
    prepare: tuple[str, ...]
    approve: str
    recover: tuple[str, ...]


def explain(config: Config) -> tuple[Explained, ...]:
    """Say what happens for every type, without secrets."""
    return tuple(_explained(config, type_) for type_ in EventType)


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
    return Explained(
        type=type_,
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
