"""Values from outside the config, `${env:NAME}` and `${file:PATH}`, and the texts of it that are secret."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from forewarn.agent.facts import mapped
from forewarn.core.errors import Invalid

# The values of these fields never reach a log.
SECRET_FIELDS = frozenset({"url", "password", "token", "secret", "secrets", "headers", "recover_url"})
# Redacting a shorter one would remove harmless words from the log.
SHORTEST_SECRET = 4
# Variables that every program needs. Their values are no secrets.
COMMON_VARIABLES = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "HOSTNAME"})
# Names that usually mean a secret, such as PGPASSWORD, API_KEY and GITHUB_TOKEN.
_SECRETIVE = re.compile(r"PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL|KEY$", re.IGNORECASE)
# The value is the place of the secret, such as KEY_FILE.
_PLACE = re.compile(r"_(FILE|PATH|DIR)$", re.IGNORECASE)
_OUTSIDE = re.compile(r"\$\{(env|file):([^{}]*)\}")


def looks_secret(variable: str) -> bool:
    """Check whether a variable of this name usually holds a secret."""
    return bool(_SECRETIVE.search(variable)) and not _PLACE.search(variable)


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
            value = self._environment[name]
            return value if name in COMMON_VARIABLES else self._keep(value)
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
