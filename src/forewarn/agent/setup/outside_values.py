"""What a config takes from outside, `${env:NAME}` and `${file:PATH}`, and which of its texts are secret."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from forewarn.agent.facts import mapped
from forewarn.core.errors import Invalid

# What stands in these fields never reaches a log.
SECRET_FIELDS = frozenset({"url", "password", "token", "secret", "headers", "recover_url", "environment"})
# A shorter one would take harmless words out of the log with it.
SHORTEST_SECRET = 4
_OUTSIDE = re.compile(r"\$\{(env|file):([^{}]*)\}")


class OutsideValues:
    """Puts in what the environment or a file holds, and remembers what must not be logged."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.secrets: set[str] = set()
        self.variables: set[str] = set()  # that were named

    def resolved(self, key: str, value: object) -> tuple[object, bool]:
        """Return the value of a field with all of it put in, and whether that is secret."""
        is_secret = key.replace("-", "_") in SECRET_FIELDS

        def resolve(text: str) -> str:
            nonlocal is_secret
            is_secret = is_secret or _OUTSIDE.search(text) is not None
            return _OUTSIDE.sub(self._found, text)

        whole = mapped(value, resolve)
        if key.replace("-", "_") in SECRET_FIELDS:
            mapped(whole, self._keep)
        return whole, is_secret

    def _found(self, named: re.Match[str]) -> str:
        source, name = named.groups()
        if source == "env":
            if name not in self._environment:
                raise Invalid(f"${{env:{name}}} is not set in the agent's environment")
            self.variables.add(name)
            return self._keep(self._environment[name])
        try:
            return self._keep(Path(name).read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise Invalid(f"${{file:{name}}} cannot be read: {why}") from None

    def _keep(self, secret: str) -> str:
        # Programs print by the line, and refusals quote as JSON does.
        written = {secret, *secret.splitlines(), json.dumps(secret)[1:-1]}
        self.secrets |= {each for each in written if len(each) >= SHORTEST_SECRET}
        return secret
