"""`log`: a line for each event in the agent's log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forewarn.agent.facts import checked_template, facts_of, filled
from forewarn.agent.handlers.kinds import Declared
from forewarn.agent.handling import Outcome, Ready, Side, Task
from forewarn.wire import fields

PREPARE = "${type} of ${resources} is ${status} (${source}), ${seconds_left} s left: ${description}"
RECOVER = "${type} of ${resources} is over"


def _template(value: object) -> str:
    return checked_template(fields.text(value))


READERS = {"prepare": _template, "recover": _template}


def declare(options: Mapping[str, Any]) -> list[Declared]:
    """Make a handler that logs."""
    return [Declared(does=Log(options.get("prepare", PREPARE), options.get("recover", RECOVER)))]


@dataclass(frozen=True, slots=True)
class Log:
    """Writes a line."""

    on_prepare: str
    on_recover: str

    async def prepare(self, task: Task) -> Outcome:
        """Log what is coming."""
        return self._say(task, self.on_prepare)

    async def recover(self, task: Task) -> Outcome:
        """Log that the event is over."""
        return self._say(task, self.on_recover)

    def describe(self, side: Side) -> str:
        """Describe the line that it would log."""
        template = self.on_prepare if side is Side.PREPARE else self.on_recover
        return f"logs a line: {template}" if template else ""

    def problems(self) -> Sequence[str]:
        """Find nothing in its way."""
        return ()

    def _say(self, task: Task, template: str) -> Outcome:
        if template:
            task.say(filled(template, facts_of(task)))
        return Ready()
