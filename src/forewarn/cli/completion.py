"""Shell completion: names and ids from the server, and the completion script.

If the server does not answer at once, nothing is completed.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from forewarn.cli import terminal
from forewarn.client.replies import RequestRefused

DEFAULT_SERVER = "http://127.0.0.1:8170"
# The things that the server lists by name and by id.
_NAMED, _WITH_ID = {"MACHINE", "HOST", "GROUP", "DRIVER"}, {"ORDER", "EVENT", "ROLLOUT", "HOLD", "WEBHOOK"}

# The person who pressed the key waits for this.
SECONDS = 1.0
MOST = 1000
WITHOUT_PAGES = ("drivers", "holds")
# The lengths of a shortened and of a whole id.
SHORT_ID, WHOLE_ID = 8, 36

PROGRAM = "forewarn"

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def completion_of(metavar: str | None) -> Completion | None:
    """Return the completion of a value by its placeholder, such as HOST or [MACHINE]...."""
    noun = re.match(r"\[?([A-Z]+)", metavar or "")
    if noun is None or noun[1] not in _NAMED | _WITH_ID:
        return None
    what, is_named = f"{noun[1].lower()}s", noun[1] in _NAMED

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            listed = [str(each["name" if is_named else "id"]) for each in _fetch(what, ctx.obj)]
            found = listed if is_named else _shortened(listed)
        except Exception:  # noqa: BLE001 - no error may disturb the line that is being typed
            return []
        typed = incomplete.casefold()
        return [each for each in found if each.casefold().startswith(typed)]

    return complete


def _shortened(known: list[str]) -> list[str]:
    """Shorten ids as far as they stay unique."""
    lengths = range(SHORT_ID, WHOLE_ID)
    enough = (length for length in lengths if len({each[:length] for each in known}) == len(known))
    length = next(enough, WHOLE_ID)
    return [each[:length] for each in known]


def _fetch(what: str, session: Any) -> list[Any]:
    # The client of the commands would take longer to import than the server takes to answer.
    import json
    import ssl
    from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

    server, token = (session.server, session.token) if session else (None, None)
    place = server or os.environ.get("FOREWARN_SERVER") or DEFAULT_SERVER
    token = token or os.environ.get("FOREWARN_TOKEN")
    url = (place if "://" in place else f"http://{place}").rstrip("/")
    if not url.startswith(("http://", "https://")):
        return []
    handlers: list[Any] = [ProxyHandler({})]
    if url.startswith("https:"):
        handlers.append(
            HTTPSHandler(context=ssl.create_default_context(cafile=os.environ.get("FOREWARN_CA")))
        )
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    pages = "" if what in WITHOUT_PAGES else f"?limit={MOST}"
    request = Request(f"{url}/v1/{what}{pages}", headers=headers)  # noqa: S310 - http or https, see above
    with build_opener(*handlers).open(request, timeout=SECONDS) as answer:
        listed: list[Any] = json.load(answer)[what]
        return listed


def show(app: click.Command) -> None:
    """Print the script for the current shell."""
    click.echo(_script(app, _shell()))


def install(app: click.Command) -> None:
    """Install the script for the current shell."""
    shell, home = _shell(), Path.home()
    script = _script(app, shell)
    match shell:
        case "bash":
            path = home / ".bash_completions" / f"{PROGRAM}.sh"
            _append(home / ".bashrc", f"source '{path}'")
        case "zsh":
            path = home / ".zfunc" / f"_{PROGRAM}"
            _append(home / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
        case "fish":
            path = home / ".config/fish/completions" / f"{PROGRAM}.fish"
        case _:
            path = _profile_of_powershell(shell)
            script = f"{path.read_text() if path.exists() else ''}\n{script}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{script}\n")
    terminal.echo(f"Installed completion for {shell} in {path}. Restart the terminal to use it.")


def _shell() -> str:
    """Return the name of the shell that most likely runs this program."""
    found = os.environ.get("SHELL")
    return Path(found).name if found else "powershell" if os.name == "nt" else "bash"


def _script(app: click.Command, shell: str) -> str:
    from click.shell_completion import get_completion_class

    kind = get_completion_class("powershell" if shell == "pwsh" else shell)
    if kind is None:
        raise click.UsageError(f"completion supports bash, zsh, fish and PowerShell, not {shell}")
    return kind(app, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source()


def _append(file: Path, line: str) -> None:
    written = file.read_text() if file.exists() else ""
    if line not in written:
        file.write_text(f"{written}\n{line}\n")


def _profile_of_powershell(shell: str) -> Path:
    import subprocess

    asked = subprocess.run(  # noqa: S603
        [shell, "-NoProfile", "-Command", "echo", "$profile"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise RequestRefused(f"{shell} does not report the path of its profile")
    return Path(asked.stdout.strip())
