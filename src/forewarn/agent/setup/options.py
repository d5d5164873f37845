"""The options of the command line, which go over the config."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.agent.agent_log import LogForm
from forewarn.agent.setup import agent_config as configs
from forewarn.agent.setup.agent_config import Config
from forewarn.core.errors import Invalid
from forewarn.wire.fields import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line sets, over what the config says."""

    config: Path
    dry_run: bool = False
    speed: float = 1.0  # how fast the endpoint's time runs; another in rehearsals only
    log: LogForm | None = None
    endpoint: str | None = None
    machine: str | None = None
    journal: Path | None = None
    listen: bool = True

    def load(self) -> Config:
        """Read the config; Invalid if it is not sound."""
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
    """Read a flag as the config's field of that name is read."""
    try:
        return read(value)
    except Invalid as refusal:
        raise Invalid(f"{name}: {refusal}") from None
