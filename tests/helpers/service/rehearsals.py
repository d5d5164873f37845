"""Running rehearsals: real endpoints with active faults."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.programs.process import FOREWARN, PATIENCE, Output, ending, started

# Permanent faults, each for its own machine.
KINDS = {
    "slow": 'delay = "1m", calls = 1',
    "hang": 'for = "30s"',
    "429": "",
    "500": "",
    "503": "calls = 2",
    "empty": "",
    "text": "",
}
HEAD = '[scenario]\nname = "faults"\nclock = "x60"\nlimit = "10h"\n'
# One minute per second.
SPEED = 60


def all_at_once() -> str:
    parts = [f'{HEAD}start = "now"', "[fleet.hosts.h]"]
    for kind, more in KINDS.items():
        settings = f'kind = "{kind}", machines = ["m-{kind}"]{f", {more}" if more else ""}'
        parts.append(
            f'[[fleet.machines]]\nname = "m-{kind}"\nhost = "h"\n[[steps]]\nfault = {{ {settings} }}'
        )
    # Faults without an end do not keep a scenario running.
    return "\n".join([*parts, '[[steps]]\nat = "9h"\ncancel = true'])


@contextmanager
def rehearsing(folder: Path, scenario: str) -> Iterator[dict[str, str]]:
    """Run a scenario, and yield the endpoints of its machines. End it early."""
    (folder / "faults.toml").write_text(scenario)
    command = [FOREWARN, "rehearse", "faults.toml", "--client-url-file", "urls.json"]
    with ending(started(command, folder)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        out, _ = Output(process.stdout), Output(process.stderr)
        out.wait_for("Guests poll these endpoints.")
        yield json.loads((folder / "urls.json").read_text())
        process.terminate()
        assert process.wait(PATIENCE) == 1
        out.finish()
        assert "it was interrupted" in out.text


def one_machine(order: str, fault: str) -> str:
    """Write a scenario for one machine in which everything begins with its first poll."""
    fleet = '[fleet.hosts.h]\n[[fleet.machines]]\nname = "m"\nhost = "h"\npriority = "spot"\n'
    steps = f'[[steps]]\norder = {{ machine = "m", action = "{order}" }}\n[[steps]]\n{fault}\n'
    later = '[[steps]]\nat = "9h"\ncancel = true'
    return HEAD + fleet + steps + later
