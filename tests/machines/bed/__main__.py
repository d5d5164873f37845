"""Manage beds by hand: up, down, show, list, shell, run, guest; see `--help`."""

import argparse
import os
import sys

from tests.machines.bed import bed as beds
from tests.machines.bed import keepers
from tests.machines.bed.bed import Bed


def main() -> None:
    """Run a command of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.machines.bed")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, about in (("up", "build a bed"), ("down", "remove it"), ("show", "tell what is in it")):
        verbs.add_parser(verb, help=about).add_argument("name")
    verbs.add_parser("list", help="name the beds")
    shell = verbs.add_parser("shell", help="open a shell in the server's network or on a host")
    shell.add_argument("name")
    shell.add_argument("place", nargs="?", default="server", choices=["server", *beds.HOSTS])
    run = verbs.add_parser("run", help="run a command there")
    run.add_argument("name")
    run.add_argument("place", choices=["server", *beds.HOSTS])
    run.add_argument("command", nargs=argparse.REMAINDER)
    guest = verbs.add_parser("guest", help="start a machine: number 10 to 250, flags as acpi=ignore")
    guest.add_argument("name")
    guest.add_argument("machine")
    guest.add_argument("number", type=int)
    guest.add_argument("flags", nargs="*")
    guest.add_argument("--on", default="kvm01", choices=list(beds.HOSTS))
    asked = parser.parse_args()
    try:
        _do(asked)
    except AssertionError as failure:
        sys.exit(str(failure))


def _do(asked: argparse.Namespace) -> None:
    match asked.verb:
        case "up":
            _show(beds.build(asked.name, bound=False))
        case "list":
            print("\n".join(beds.names()))
        case "show":
            _show(beds.standing(asked.name))
        case "down":
            beds.remove_by_name(asked.name)
        case "shell":
            _become(beds.standing(asked.name), asked.place, [os.environ.get("SHELL", "sh")])
        case "run":
            _become(beds.standing(asked.name), asked.place, asked.command)
        case "guest":
            made = beds.standing(asked.name).guest(
                asked.machine, number=asked.number, on=asked.on, flags=asked.flags
            )
            print(f"{made.name} {made.vm_id} {made.address} {made.mac}\nconsole {made.console.path}")


def _become(bed: Bed, place: str, command: list[str]) -> None:
    there = bed.inside if place == "server" else keepers.inside(bed.hosts[place].keeper, everything=True)
    os.execvp(there[0], [*there, *command])


def _show(bed: Bed) -> None:
    print(f"{bed.name}: {bed.folder}")
    for host in bed.hosts.values():
        print(f"{host.name} {host.uri} (from outside: {host.socket_uri})")
        for line in host.virsh("list", "--all").splitlines():
            print(f"  {line}")


if __name__ == "__main__":
    main()
