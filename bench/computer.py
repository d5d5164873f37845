"""The computer on which the benchmarks run."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Computer:
    """The properties of a computer that influence the figures."""

    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    load: float  # the load average before the run; above a few tenths, the times are too long

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        return (
            f"{self.processor}, {cores}, {self.memory_gib:.0f} GiB; {self.kernel}; Python {self.python}; "
            f"load before {self.load:.1f}"
        )


def this_computer() -> Computer:
    """Describe this computer and its current load."""
    return Computer(
        processor=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=float(_field("/proc/meminfo", "MemTotal").split()[0]) / 1024**2,
        kernel=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        load=round(os.getloadavg()[0], 2),
    )


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""
