"""The table of settings, from the declarations in `config.py` and the options of drivers."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

from forewarn.api.openapi import field_comments
from forewarn.config import Settings
from forewarn.core.policy import SET_ELSEWHERE
from forewarn.core.time_formats import span_literal
from forewarn.drivers.command import CommandOptions
from forewarn.drivers.driver_setup import CallOptions
from forewarn.drivers.libvirt.options import LibvirtOptions
from forewarn.drivers.openstack.options import OpenStackOptions

FLAGS = {
    "database": "--database",
    "fleet": "--fleet",
    "clock": "--clock",
    "guest.listen": "--guest",
    "operator.listen": "--operator",
}
DRIVERS = {"command": CommandOptions(), "libvirt": LibvirtOptions(), "openstack": OpenStackOptions()}
# Pages that explain a setting or a section.
PAGES: Mapping[str, str] = {
    "database": "../operate/back-up-and-restore.md",
    "fleet": "fleet-file.md",
    "clock": "../operate/back-up-and-restore.md#simulated-time-and-system-time",
    "guest.check-mac": "../deploy/guest-network.md#prevent-address-spoofing",
    "guest.connections": "../deploy/guest-network.md#how-many-machines",
    "metadata-proxy": "../deploy/guest-network.md#behind-openstacks-metadata-proxy",
    "operator.origins": "../deploy/console-behind-a-proxy.md",
    "operator.session": "operator-api.md#sessions-for-browsers",
    "operator.certificate": "../deploy/guest-network.md#run-the-server-as-a-service",
    "webhooks": "../operate/follow-events.md#webhooks-of-a-project",
    "times.move-retries": "rollouts.md#failed-moves",
    "times.return-by": "../operate/hooks.md#a-host-that-does-not-come-back",
    "hooks": "../operate/hooks.md",
    "hooks.machine": "../operate/hooks.md#around-the-work-on-a-machine",
    "history": "../operate/back-up-and-restore.md#how-long-the-history-is-kept",
    "drivers.command": "../deploy/your-own-hypervisor.md",
    "drivers.libvirt": "libvirt.md",
    "drivers.openstack": "../deploy/openstack.md",
}


def setting_rows() -> Iterator[tuple[str, ...]]:
    """Yield key, flag, default and meaning of each setting, with a row for each section."""
    yield from _rows(Settings(), "")
    yield _section("drivers.NAME", "A driver that hosts may name.")
    yield (
        "`kind`",
        "",
        "NAME",
        "`command`, or an installed kind (`forewarn driver list`). Default: the driver of that name.",
    )
    yield (
        "`isolated`",
        "",
        "as the driver declares",
        "Run the driver in a [process of its own](../deploy/write-a-driver.md#isolation). "
        "`libvirt` always does.",
    )
    shared = {each.name for each in fields(CallOptions)}
    yield from _of_class(CallOptions(), "drivers.NAME", shared)
    for kind, options in DRIVERS.items():
        yield _section(f"drivers.{kind}", f"Options of the kind `{kind}`.")
        own = {each.name for each in fields(options)} - shared
        yield from _of_class(options, f"drivers.{kind}", own)


def _rows(settings: Any, path: str) -> Iterator[tuple[str, ...]]:
    own = [each.name for each in fields(settings) if each.metadata != SET_ELSEWHERE]
    tables = [name for name in own if is_dataclass(getattr(settings, name))]
    yield from _of_class(settings, path, {*own} - {*tables, "drivers"})
    for name in tables:
        inner, place = getattr(settings, name), f"{path}{'.' if path else ''}{name.replace('_', '-')}"
        yield _section(place, type(inner).__doc__.partition("\n")[0])
        yield from _rows(inner, place)


def _section(path: str, about: str) -> tuple[str, ...]:
    return f"**`[{path}]`**", "", "", f"{about.partition('. `')[0].rstrip('.')}.{_link(path)}"


def _of_class(settings: Any, path: str, names: set[str]) -> Iterator[tuple[str, ...]]:
    comments = field_comments(type(settings))
    for each in fields(settings):
        if each.name in names:
            key = each.name.replace("_", "-")
            whole = f"{path}.{key}" if path else key
            flag = f"`{FLAGS[whole]}`" if whole in FLAGS else ""
            about = comments[each.name]["description"]
            yield f"`{key}`", flag, _default(getattr(settings, each.name), whole), f"{about}{_link(whole)}"


def _default(value: Any, path: str) -> str:
    match value:
        case None if path == "history.keep":
            return "`forever`"
        case None | "" | ():
            return "none"
        case bool():
            return str(value).lower()
        case timedelta():
            return span_literal(value.total_seconds())
        case tuple():
            return ", ".join(f"`{each}`" for each in value)
        case str():
            return f"`{value}`"
    return f"{value:g}"


def _link(path: str) -> str:
    return f" [More]({PAGES[path]})." if path in PAGES else ""
