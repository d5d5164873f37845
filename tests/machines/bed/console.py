"""What a guest writes to its serial console: a file that goes on through reboots and moves."""

import re
from pathlib import Path

from tests.helpers.programs.process import until

# Under emulation, beside others who need the processors too, a boot takes far longer than some seconds.
BOOT_PATIENCE = 180.0


class Console:
    """The console of one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def text(self) -> str:
        try:
            return self.path.read_bytes().decode(errors="replace").replace("\r", "")
        except FileNotFoundError:
            return ""

    @property
    def lines(self) -> list[str]:
        """Return the whole lines so far; the last one may still be written to."""
        return self.text.split("\n")[:-1]

    def matching(self, pattern: str) -> list[str]:
        """Return the lines in which a regular expression is found."""
        return [line for line in self.lines if re.search(pattern, line)]

    def wait_for(self, pattern: str, *, times: int = 1, within: float = BOOT_PATIENCE) -> str:
        """Wait until that many lines match, and return the last of these."""

        def found() -> list[str]:
            return self.matching(pattern)[times - 1 :]

        try:
            return until(found, what=f"line {times} with {pattern!r}", within=within)[0]
        except AssertionError as late:
            raise AssertionError(f"{late}; console {self.path}:\n{self.text[-3000:]}") from None

    def wait_for_boot(self, number: int = 1, *, within: float = BOOT_PATIENCE) -> str:
        """Wait until the machine has come up for the nth time, and return that boot's id."""
        # Not at the beginning of a line alone: the kernel may have begun it.
        return self.wait_for(r"guest is up: .*boot=", times=number, within=within).rsplit("boot=", 1)[1]

    @property
    def boots(self) -> int:
        """How often the machine has come up."""
        return len(self.matching(r"guest is up: "))
