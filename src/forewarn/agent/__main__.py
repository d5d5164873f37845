"""The agent as a process of its own, without the command that started it: `python -m forewarn.agent OPTIONS`.

It runs for months in every machine, so it should be small. The command line is Click's business; what that
loads is left behind when `forewarn agent run` becomes this.
"""

import json
import sys
from importlib.util import find_spec


def main(options: str) -> None:
    """Run with options that `forewarn agent run` has read."""
    _spare()
    from pathlib import Path

    from forewarn.agent.agent_log import LogForm
    from forewarn.agent.daemon import Options, run
    from forewarn.core.errors import ForewarnError, Invalid

    given = json.loads(options)
    paths = {name: Path(given.pop(name)) for name in ("config", "journal") if given.get(name)}
    log = LogForm(given.pop("log")) if given.get("log") else None
    try:
        run(Options(**{**given, **paths, "log": log}))
    except ForewarnError as error:
        first, *rest = str(error).splitlines() or [""]
        print(f"forewarn: {first}", *rest, sep="\n", file=sys.stderr)  # noqa: T201 - the program's own message
        sys.exit(2 if isinstance(error, Invalid) else 1)


def _spare() -> None:
    """Keep out of this process what it never uses."""
    # httpx's own command, which would bring a terminal's worth of libraries with it.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    # Asked for at each request; in vain, that is a search of the whole path.
    for other in ("sniffio", "trio"):
        if find_spec(other) is None:
            sys.modules[other] = None  # type: ignore[assignment]


if __name__ == "__main__":
    main(sys.argv[1])
