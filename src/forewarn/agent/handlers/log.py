"""`log`: a line in the agent's log for each event."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forewarn.agent.facts import checked_template, facts_of, filled
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Outcome, Ready, Side, Task
from forewarn.wire import fields

LINES = {
    Side.PREPARE: "${type} of ${resources} is ${status} (${source}), ${seconds_left} s left: ${description}",
    Side.RECOVER: "${type} of ${resources} is over",
}


def _template(value: object) -> str:
    return checked_template(fields.text(value))


READERS = {"prepare": _template, "recover": _template}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Create the handler."""
    return [Declared(does=Log({side: options.get(side, default) for side, default in LINES.items()}))]


@dataclass(frozen=True, slots=True)
class Log:
    """Logs a line for each side."""

    lines: Mapping[Side, str]

    async def prepare(self, task: Task) -> Outcome:
        """Log the line of the task's side."""
        if template := self.lines[task.side]:
            task.say(filled(template, facts_of(task)))
        return Ready()

    recover = prepare

    def describe(self, side: Side) -> str:
        """Describe the line."""
        line = self.lines.get(side)
        return f"logs a line: {line}" if line else ""

    def problems(self) -> Sequence[str]:
        """Return no problems."""
        return ()
