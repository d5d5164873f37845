"""Two hypervisor hosts on this computer, joined by a bridge with the namespace in which the service runs.

Each host has a network, mount, host-name and process namespace of its own, a libvirtd in it, and guests that
boot a real kernel. `python -m tests.machines.bed up` makes one by hand; a test takes `bed.built()`.
"""

from tests.machines.bed.bed import Bed, built
from tests.machines.bed.console import Console
from tests.machines.bed.domains import Disk, Guest
from tests.machines.bed.hosts import Hypervisor

__all__ = ["Bed", "Console", "Disk", "Guest", "Hypervisor", "built"]
