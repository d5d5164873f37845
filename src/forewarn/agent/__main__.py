"""The process of the agent: `python -m forewarn.agent OPTIONS`.

The agent runs for months in every machine, so it must be small. `forewarn agent run` parses the command line
with Click and then replaces itself with this process, which does not load Click.
"""

import json
import sys
from importlib.util import find_spec


def main(options: str) -> None:
    """Run with the options from `forewarn agent run`, as JSON."""
    _block_unused_modules()
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


def _block_unused_modules() -> None:
    # httpx's command line imports many libraries for terminals.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    # httpcore tries to import these at each request. Without them, each try would search the whole path.
    for other in ("sniffio", "trio"):
        if find_spec(other) is None:
            sys.modules[other] = None  # type: ignore[assignment]


if __name__ == "__main__":
    main(sys.argv[1])
