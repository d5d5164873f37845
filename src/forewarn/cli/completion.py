"""Shell completion: names and ids from the server, and the completion script.

If the server does not answer at once, nothing is completed.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from forewarn.cli import terminal
from forewarn.cli.session import DEFAULT_SERVER, Session
from forewarn.client.replies import RequestRefused

# The person who pressed the key waits for this.
SECONDS = 1.0
MOST = 1000
WITHOUT_PAGES = ("drivers", "holds")
# The lengths of a shortened and of a whole id.
SHORT_ID, WHOLE_ID = 8, 36

PROGRAM = "forewarn"

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def names(what: str) -> Completion:
    """Complete the names of machines, hosts, groups or drivers."""
    return _completing(what, lambda found: [str(each["name"]) for each in found])


def ids(what: str) -> Completion:
    """Complete the ids of orders, events, rollouts, holds or webhooks, shortened as in tables."""
    return _completing(what, lambda found: _shortened([str(each["id"]) for each in found]))


def _completing(what: str, choices: Callable[[list[Any]], list[str]]) -> Completion:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            found = choices(_fetch(what, ctx.find_object(Session) or Session()))
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


def _fetch(what: str, session: Session) -> list[Any]:
    # The client of the commands would take longer to import than the server takes to answer.
    import json
    import ssl
    from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

    place = session.server or os.environ.get("FOREWARN_SERVER") or DEFAULT_SERVER
    token = session.token or os.environ.get("FOREWARN_TOKEN")
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
    asked = subprocess.run(  # noqa: S603
        [shell, "-NoProfile", "-Command", "echo", "$profile"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise RequestRefused(f"{shell} does not report the path of its profile")
    return Path(asked.stdout.strip())
