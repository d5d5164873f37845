"""The server's metrics in the text format of Prometheus."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from forewarn.api.limits import CallRefusals
from forewarn.api.services import Services
from forewarn.control.engine.driver_calls import DriverCallCounts
from forewarn.control.fleet.fleet_views import Counts
from forewarn.control.webhook_use_cases import WebhookView
from forewarn.durations import BOUNDS, Distribution, Durations
from forewarn.version import version

__all__ = ["CONTENT_TYPE", "StoreCounts", "write_metrics"]

# One value, or values by their label or tuple of labels.
Values: TypeAlias = float | Mapping[Any, float]


class StoreCounts(NamedTuple):
    """Counts from the store, and the state of webhooks."""

    counts: Counts
    webhooks: Sequence[WebhookView]


class _Collected(Collector):
    """Metrics that have been collected already."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
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
    registry.register(_Collected([*_of_server(service, stored, refusals, durations)]))
    return generate_latest(registry)


def _of_server(
    service: Services, stored: StoreCounts | None, refusals: CallRefusals, durations: Durations
) -> Iterator[Metric]:
    parts, holds = service.parts, service.fleet.unsaved_holds
    yield _gauge("store_readable", "Whether the database can be read: 1 or 0.", stored is not None)
    yield _gauge("store_writable", "Whether the database can be written: 1 or 0.", parts.probes.writable())
    yield _counter(
        "store_silences", "Number of times the database stopped answering.", parts.probes.silences()
    )
    yield _gauge(
        "unsaved_holds",
        "Number of holds that are only in memory because the database could not be written.",
        len(holds.in_force),
    )
    yield _counter(
        "refused_holds",
        "Number of holds in memory that could not be saved later. They are not in effect.",
        holds.refused_so_far,
    )
    yield _gauge(
        "clock_offset_seconds",
        "Service time minus system time, in seconds.",
        service.clock.offset.total_seconds(),
    )
    yield _gauge(
        "build_info",
        "Version of forewarn and of Python. The value is always 1.",
        {(version(), platform.python_version()): 1.0},
        "version",
        "python",
    )
    if stored is not None:
        yield from _of_counts(stored.counts)
    yield from _of_webhooks(() if stored is None else stored.webhooks)
    for name, value in parts.guest_counters().items():
        yield _counter(f"guest_{name}", _GUEST_COUNTERS.get(name, f"Number of guest {name}."), value)
    yield _counter(
        "connections_refused",
        "Number of refused connections, by port (guest or operator) and limit.",
        parts.refused(),
        "plane",
        "limit",
    )
    yield _counter(
        "requests_refused",
        "Number of operator API requests that a limit refused.",
        {str(limit): count for limit, count in refusals.counts.items()},
        "limit",
    )
    yield _counter(
        "operator_hang_ups",
        "Number of operator API clients that disconnected before their response.",
        parts.hang_ups(),
    )
    background = parts.background
    yield _counter(
        "background_restarts",
        "Number of restarts of background tasks after an unexpected error.",
        background.restarts(),
        "task",
    )
    yield _gauge(
        "background_failing", "Number of background tasks that keep failing.", background.failing(), "task"
    )
    reads = parts.read_counts()
    yield _gauge(
        "reads",
        "Number of lists, exports and plans that run or wait for a thread.",
        {"running": reads.running, "waiting": reads.waiting},
        "state",
    )
    yield _counter("reads_refused", "Number of reads that could not begin in time.", reads.refused)
    calls = parts.driver_calls()
    yield from _of_driver_calls(calls)
    yield _histogram(
        "request",
        "Duration of operator API requests in seconds, by operation and class of status.",
        ("operation", "status"),
        durations.seen(),
    )
    yield _histogram(
        "store",
        "Duration of database transactions in seconds, from begin to commit.",
        ("kind",),
        parts.store_durations(),
    )
    yield _histogram(
        "driver_call", "Duration of driver calls in seconds.", ("driver", "verb"), calls.durations
    )


_GUEST_COUNTERS = {
    "polls": "Number of answered guest polls.",
    "approvals": "Number of approvals by guests.",
    "errors": "Number of guest requests that failed with an internal error.",
}

_RECORD_COUNTERS = {
    "promise-broken": "Number of machines whose notice or update domain an operator did not respect.",
    "notice-late": "Number of machines that got too little notice because the server was unavailable.",
    "notice-never": "Number of machines that were never sent an event.",
    "unannounced-impact": "Number of machines that changed outside forewarn without an event.",
}


def _of_counts(counts: Counts) -> Iterator[Metric]:
    for what, by_state in counts.present.items():
        yield _gauge(what, f"Number of {what}, by state.", by_state, "state")
    yield _gauge("hosts_by_driver", "Number of hosts, by driver.", counts.drivers, "driver")
    yield _gauge(
        "host_reachable",
        "Whether the driver reaches the host: 1 or 0. Only for drivers that can tell.",
        counts.reachable,
        "host",
    )
    yield _gauge("holds", "Number of holds in effect, by scope.", counts.holds, "reach")
    yield _gauge(
        "oldest_overdue_start_seconds",
        "Time since the start of an event was due, in service seconds, for the event that waits longest.",
        counts.overdue.total_seconds(),
    )
    yield _gauge(
        "orders_stuck",
        "Number of open orders that need a person, for example after three withdrawn announcements.",
        counts.stuck,
    )
    for kind, count in counts.tallies.items():
        about = _RECORD_COUNTERS.get(kind, f"Number of machines in records of kind {kind}.")
        yield _counter(kind.replace("-", "_"), about, count)


def _of_driver_calls(calls: DriverCallCounts) -> Iterator[Metric]:
    yield _counter(
        "driver_calls",
        "Number of driver calls, by answer.",
        dict(sorted(calls.answered.items())),
        "driver",
        "verb",
        "answer",
    )
    yield _gauge("driver_calls_running", "Number of running driver calls.", calls.running, "driver")
    yield _gauge(
        "driver_calls_hung",
        "Number of driver calls that timed out and have not returned.",
        calls.hung,
        "driver",
    )
    yield _counter(
        "driver_crashes", "Number of restarts of driver processes after a crash.", calls.crashes, "driver"
    )


def _of_webhooks(views: Sequence[WebhookView]) -> Iterator[Metric]:
    names = [(view.webhook.id, view.webhook.project or "") for view in views]
    yield _gauge(
        "webhook_behind",
        "Number of records that wait for delivery to the webhook.",
        dict(zip(names, (view.behind for view in views), strict=True)),
        "webhook",
        "project",
    )
    yield _gauge(
        "webhook_failures",
        "Number of failed attempts since the last delivery to the webhook.",
        dict(zip(names, (view.webhook.failures for view in views), strict=True)),
        "webhook",
        "project",
    )


def _gauge(name: str, about: str, values: Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"forewarn_{name}", about, labels=labels), values)


def _counter(name: str, about: str, values: Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"forewarn_{name}", about, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for labels, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        family.add_metric((labels,) if isinstance(labels, str) else labels, float(value))
    return family


def _histogram(
    what: str, about: str, labels: Sequence[str], seen: Mapping[tuple[str, ...], Distribution]
) -> Metric:
    histogram = HistogramMetricFamily(f"forewarn_{what}_duration_seconds", about, labels=labels)
    for values, taken in seen.items():
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, taken.up_to), strict=True))
        histogram.add_metric(values, buckets, sum_value=taken.seconds)
    return histogram
