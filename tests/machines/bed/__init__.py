"""Two hypervisor hosts on this computer, connected by a bridge to the namespace of the service.

Each host has its own network, mount, host-name and process namespaces, a libvirtd, and guests that boot a
real kernel. `python -m tests.machines.bed up` creates a bed by hand; tests use `bed.built()`.
"""

from tests.machines.bed.bed import Bed, built
from tests.machines.bed.console import Console
from tests.machines.bed.domains import Disk, Guest
from tests.machines.bed.hosts import Hypervisor

__all__ = ["Bed", "Console", "Disk", "Guest", "Hypervisor", "built"]
