"""libvirt's events, with which tests count operations on machines."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.helpers.programs.process import Output, until
from tests.machines.bed import Bed, keepers


class Lifecycle:
    """The events of a bed's hosts, from `virsh event`."""

    def __init__(self, outputs: dict[str, Output]) -> None:
        self._outputs = outputs

    def count(self, machine: str, happened: str) -> int:
        """Count an event of a machine on all hosts, such as `Suspended` or `Shutdown`."""
        wanted = f"for domain '{machine}': {happened}"
        return sum(wanted in line for output in self._outputs.values() for line in output.lines)

    def wait_for(self, machine: str, happened: str) -> None:
        until(lambda: self.count(machine, happened), what=f"{happened} of {machine}", within=240)


@contextmanager
def lifecycle(bed: Bed) -> Iterator[Lifecycle]:
    """Follow the events of all hosts, whose libvirtd must keep running."""
    programs = {
        name: subprocess.Popen(
            # On the host itself, because its network may be cut.
            [
                *keepers.inside(host.keeper, everything=True),
                # Killing nsenter would leave virsh running with its output open.
                *("setpriv", "--pdeathsig", "KILL"),
                *("virsh", "event", "--event", "lifecycle", "--loop"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, host in bed.hosts.items()
    }
    outputs = {name: Output(program.stdout) for name, program in programs.items() if program.stdout}
    try:
        yield Lifecycle(outputs)
    finally:
        for program in programs.values():
            program.kill()
            program.wait()
        for output in outputs.values():
            output.finish()
