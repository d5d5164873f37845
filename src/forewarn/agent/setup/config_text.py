"""The text of a config: values from outside it, what of it is secret, and on which line something stands.

Values from outside are `${env:NAME}` and `${file:PATH}`. tomllib does not tell lines: a line begins a
statement if, and only if, all that stands before it is TOML by itself. So no line inside a text of several
lines is taken for a key.
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
# Redacting a shorter one would remove harmless words from the log.
SHORTEST_SECRET = 4
# Variables that every program needs. Their values are no secrets.
COMMON_VARIABLES = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "HOSTNAME"})
# Names that usually mean a secret, such as PGPASSWORD, API_KEY and GITHUB_TOKEN.
_SECRETIVE = re.compile(r"PASSWORD|PASSWD|TOKEN|SECRET|CREDENTIAL|KEY$", re.IGNORECASE)
# The value is the place of the secret, such as KEY_FILE.
_PLACE = re.compile(r"_(FILE|PATH|DIR)$", re.IGNORECASE)
_OUTSIDE = re.compile(r"\$\{(env|file):([^{}]*)\}")
_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


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


KeyPath: TypeAlias = tuple[str | int, ...]


def line_of(text: str, path: KeyPath) -> int | None:
    """Find the line of a field, or else of the nearest thing around it; None if nothing of it is there."""
    lines = dict(_lines(text))
    for length in range(len(path), 0, -1):
        sought = path[:length]
        # A list of tables has no line of its own but that of its first, nor has a table that is only written
        # through what it holds.
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
    """Put after the name of each list of tables which one of them is meant: the last so far."""
    path: list[str | int] = []
    for index, name in enumerate(names):
        path.append(name)
        if counted[names[: index + 1]]:
            path.append(counted[names[: index + 1]] - 1)
    return tuple(path)
