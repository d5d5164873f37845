"""The server's metrics in the text format of Prometheus."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from forewarn.api.limits import CallRefusals
from forewarn.api.services import Services
from forewarn.control.fleet.fleet_views import Counts
from forewarn.control.webhook_use_cases import WebhookView
from forewarn.durations import BOUNDS, Distribution, Durations
from forewarn.version import version

__all__ = ["CONTENT_TYPE", "StoreCounts", "write_metrics"]

# Help text and labels of each metric, without the prefix `forewarn_`.
GAUGES: Mapping[str, tuple[str, ...]] = {
    "store_readable": ("Whether the database can be read: 1 or 0.",),
    "store_writable": ("Whether the database can be written: 1 or 0.",),
    "unsaved_holds": ("Number of holds that are only in memory, because the database is not writable.",),
    "clock_offset_seconds": ("Service time minus system time, in seconds.",),
    "build_info": ("Version of forewarn and of Python. The value is always 1.", "version", "python"),
    "background_failing": ("Number of background tasks that keep failing.", "task"),
    "reads": ("Number of lists, exports and plans that run or wait for a thread.", "state"),
    "driver_calls_running": ("Number of running driver calls.", "driver"),
    "driver_calls_hung": ("Number of driver calls that timed out and have not returned.", "driver"),
    "webhook_behind": ("Number of records that wait for delivery to the webhook.", "webhook", "project"),
    "webhook_failures": ("Number of failed attempts since the last delivery.", "webhook", "project"),
    "machines": ("Number of machines, by state.", "state"),
    "hosts": ("Number of hosts, by state.", "state"),
    "orders": ("Number of open orders, by state.", "state"),
    "events": ("Number of events that guests see, by status.", "state"),
    "rollouts": ("Number of open rollouts, by state.", "state"),
    "hosts_by_driver": ("Number of hosts, by driver.", "driver"),
    "host_reachable": ("Whether the driver reaches the host: 1 or 0. Missing if it cannot tell.", "host"),
    "holds": ("Number of holds in effect, by scope.", "reach"),
    "oldest_overdue_start_seconds": ("Service time since the oldest overdue start of an event was due.",),
    "orders_stuck": ("Number of open orders that need a person, such as after three withdrawals.",),
}
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "store_silences": ("Number of times the database stopped answering.",),
    "refused_holds": ("Number of holds in memory that could not be saved later. They are not in effect.",),
    "guest_polls": ("Number of answered guest polls.",),
    "guest_approvals": ("Number of approvals by guests.",),
    "guest_errors": ("Number of guest requests that failed with an internal error.",),
    "connections_refused": ("Number of refused connections, by port and limit.", "plane", "limit"),
    "requests_refused": ("Number of operator API requests that a limit refused.", "limit"),
    "operator_hang_ups": ("Number of operator API clients that disconnected before their response.",),
    "background_restarts": ("Number of restarts of background tasks after an unexpected error.", "task"),
    "reads_refused": ("Number of reads that could not begin in time.",),
    "driver_calls": ("Number of driver calls, by answer.", "driver", "verb", "answer"),
    "driver_crashes": ("Number of restarts of driver processes after a crash.", "driver"),
    "promise_broken": ("Number of machines whose notice or update domain an operator did not respect.",),
    "notice_late": ("Number of machines that got too little notice because the server was unavailable.",),
    "notice_never": ("Number of machines that were never sent an event.",),
    "unannounced_impact": ("Number of machines that changed outside forewarn without an event.",),
}
HISTOGRAMS: Mapping[str, tuple[str, ...]] = {
    "request": ("Duration of operator API requests in seconds.", "operation", "status"),
    "store": ("Duration of database transactions in seconds, from begin to commit.", "kind"),
    "driver_call": ("Duration of driver calls in seconds.", "driver", "verb"),
}


class StoreCounts(NamedTuple):
    """Counts from the store, and the state of webhooks."""

    counts: Counts
    webhooks: Sequence[WebhookView]


class _Collected(Collector):
    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def write_metrics(
    service: Services, stored: StoreCounts | None, *, refusals: CallRefusals, durations: Durations
) -> bytes:
    """Return all metrics. Without store counts, their metrics are missing."""
    # A separate registry, so that metrics of other code in the process do not appear.
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    parts, calls = service.parts, service.parts.driver_calls()
    values = _of_server(service, refusals) | _of_store(stored)
    histograms = {
        "request": durations.seen(),
        "store": parts.store_durations(),
        "driver_call": calls.durations,
    }
    metrics = [
        *(_filled(name, value) for name, value in values.items()),
        *(_histogram(name, seen) for name, seen in histograms.items()),
    ]
    registry.register(_Collected(metrics))
    return generate_latest(registry)


def _of_server(service: Services, refusals: CallRefusals) -> dict[str, Any]:
    """Return the values of metrics: a number, or numbers by label."""
    parts, holds = service.parts, service.fleet.unsaved_holds
    background, reads, calls = parts.background, parts.read_counts(), parts.driver_calls()
    return {
        "store_writable": parts.probes.writable(),
        "store_silences": parts.probes.silences(),
        "unsaved_holds": len(holds.in_force),
        "refused_holds": holds.refused_total,
        "clock_offset_seconds": service.clock.offset.total_seconds(),
        "build_info": {(version(), platform.python_version()): 1},
        **{f"guest_{name}": value for name, value in parts.guest_counters().items()},
        "connections_refused": parts.refused(),
        "requests_refused": refusals.counts,
        "operator_hang_ups": parts.hang_ups(),
        "background_restarts": background.restarts(),
        "background_failing": background.failing(),
        "reads": {"running": reads.running, "waiting": reads.waiting},
        "reads_refused": reads.refused,
        "driver_calls": dict(sorted(calls.answered.items())),
        "driver_calls_running": calls.running,
        "driver_calls_hung": calls.hung,
        "driver_crashes": calls.crashes,
    }


def _of_store(stored: StoreCounts | None) -> dict[str, Any]:
    webhooks = {
        (view.webhook.id, view.webhook.project or ""): view
        for view in (() if stored is None else stored.webhooks)
    }
    found: dict[str, Any] = {
        "store_readable": stored is not None,
        "webhook_behind": {names: view.behind for names, view in webhooks.items()},
        "webhook_failures": {names: view.webhook.failures for names, view in webhooks.items()},
    }
    if stored is None:
        return found
    counts = stored.counts
    return {
        **found,
        **counts.present,
        "hosts_by_driver": counts.drivers,
        "host_reachable": counts.reachable,
        "holds": counts.holds,
        "oldest_overdue_start_seconds": counts.overdue.total_seconds(),
        "orders_stuck": counts.stuck,
        **{kind.replace("-", "_"): count for kind, count in counts.tallies.items()},
    }


def _filled(name: str, values: Any) -> Metric:
    kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
    about, *labels = (GAUGES if name in GAUGES else COUNTERS)[name]
    family = kind(f"forewarn_{name}", about, labels=labels)
    for label, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        family.add_metric((label,) if isinstance(label, str) else label, float(value))
    return family


def _histogram(name: str, seen: Mapping[tuple[str, ...], Distribution]) -> Metric:
    about, *labels = HISTOGRAMS[name]
    histogram = HistogramMetricFamily(f"forewarn_{name}_duration_seconds", about, labels=labels)
    for values, taken in seen.items():
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, taken.up_to), strict=True))
        histogram.add_metric(values, buckets, sum_value=taken.seconds)
    return histogram
