"""The text of a config: external values, secrets, and the line numbers of fields.

External values are `${env:NAME}` and `${file:PATH}`. tomllib does not report line numbers. A line begins a
statement if and only if the text before it is valid TOML, so lines of multi-line strings do not count.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from forewarn.agent.facts import mapped
from forewarn.core.errors import Invalid

# The values of these fields never reach a log.
SECRET_FIELDS = frozenset({"url", "password", "token", "secret", "secrets", "headers", "recover_url"})
# Redacting shorter secrets would remove harmless words from the log.
SHORTEST_SECRET = 4
# Variables that every program needs. Their values are not secret.
COMMON_VARIABLES = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "HOSTNAME"})
# Names of variables that usually contain secrets, such as PGPASSWORD, API_KEY and GITHUB_TOKEN.
_SECRETIVE = re.compile(r"PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL|KEY$", re.IGNORECASE)
# Names of variables with the path of a secret, such as KEY_FILE.
_PLACE = re.compile(r"_(FILE|PATH|DIR)$", re.IGNORECASE)
_EXTERNAL = re.compile(r"\$\{(env|file):([^{}]*)\}")
_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def looks_secret(variable: str) -> bool:
    """Return whether a variable of this name usually contains a secret."""
    return bool(_SECRETIVE.search(variable)) and not _PLACE.search(variable)


class ExternalValues:
    """Replaces external values and collects the secrets among them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.secrets: set[str] = set()
        self.variables: set[str] = set()  # named by ${env:}

    def resolved(self, key: str, value: object) -> tuple[object, bool]:
        """Return a field's value with external values replaced, and whether it is secret."""
        is_secret = key.replace("-", "_") in SECRET_FIELDS

        def resolve(text: str) -> str:
            nonlocal is_secret
            is_secret = is_secret or _EXTERNAL.search(text) is not None
            return _EXTERNAL.sub(self._found, text)

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
        # Programs print secrets line by line, and messages quote them as JSON.
        written = {secret, *secret.splitlines(), json.dumps(secret)[1:-1]}
        self.secrets |= {each for each in written if len(each) >= SHORTEST_SECRET}
        return secret


KeyPath: TypeAlias = tuple[str | int, ...]


def line_of(text: str, path: KeyPath) -> int | None:
    """Return the line of a field, or of the nearest table around it; None if there is none."""
    lines = dict(_lines(text))
    for length in range(len(path), 0, -1):
        sought = path[:length]
        # A list of tables has the line of its first table. A table without a header has the line of its
        # first field.
        inside = (line for path, line in lines.items() if path[:length] == sought)
        if found := lines.get(sought) or next(inside, None):
            return found
    return None


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    lines = text.splitlines()
    around: KeyPath = ()
    counted: Counter[KeyPath] = Counter()
    for number, line in enumerate(lines):
        if not _is_whole("\n".join(lines[:number])):
            continue
        if (header := _HEADER.match(line)) and not _KEY.match(line):
            around = _parts(header[2])
            if header[1] == "[[":
                counted[around] += 1
            around = _numbered(around, counted)
            yield around, number + 1
        elif key := _KEY.match(line):
            yield (*around, *_parts(key[1])), number + 1


def _is_whole(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _numbered(names: KeyPath, counted: Counter[KeyPath]) -> KeyPath:
    """Insert the index of the last table after the name of each list of tables."""
    path: list[str | int] = []
    for index, name in enumerate(names):
        path.append(name)
        if counted[names[: index + 1]]:
            path.append(counted[names[: index + 1]] - 1)
    return tuple(path)
