"""The serial console of a guest: a file that continues over reboots and moves."""

import re
from pathlib import Path

from tests.helpers.programs.process import until

# Under emulation on a busy computer, a boot takes far longer than some seconds.
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
        """Return the complete lines so far."""
        return self.text.split("\n")[:-1]

    def matching(self, pattern: str) -> list[str]:
        """Return the lines that match a regular expression."""
        return [line for line in self.lines if re.search(pattern, line)]

    def wait_for(self, pattern: str, *, times: int = 1, within: float = BOOT_PATIENCE) -> str:
        """Wait until a number of lines match; return the last of them."""

        def found() -> list[str]:
            return self.matching(pattern)[times - 1 :]

        try:
            return until(found, what=f"line {times} with {pattern!r}", within=within)[0]
        except AssertionError as late:
            raise AssertionError(f"{late}; console {self.path}:\n{self.text[-3000:]}") from None

    def wait_for_boot(self, number: int = 1, *, within: float = BOOT_PATIENCE) -> str:
        """Wait until the machine has booted n times; return the boot's id."""
        # The kernel may have written the beginning of the line.
        return self.wait_for(r"guest is up: .*boot=", times=number, within=within).rsplit("boot=", 1)[1]

    @property
    def boots(self) -> int:
        """How often the machine has booted."""
        return len(self.matching(r"guest is up: "))
