"""The driver of hosts that run libvirt: it freezes, reboots, moves, stops and starts their domains."""
