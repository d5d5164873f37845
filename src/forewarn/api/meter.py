"""The metrics, in the text format of Prometheus."""

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest

from forewarn.api.limits import Limit
from forewarn.control.engine.driver_counts import DriverCallCounts
from forewarn.control.fleet.fleet_views import Counts
from forewarn.control.push.webhooks import WebhookView
from forewarn.durations import BOUNDS, Distribution, ReadCounts
from forewarn.supervision import Supervisor
from forewarn.version import version

__all__ = ["CONTENT_TYPE", "Counted", "Meter"]


class Counted(NamedTuple):
    """What the store counts, and how webhooks fare."""

    counts: Counts
    webhooks: Sequence[WebhookView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """How it is with what must be saved."""

    possible: bool
    silences: int
    unsaved_holds: int
    refused_holds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Connections and requests that were not answered: refused by a limit, or given up by the client."""

    connections: Mapping[tuple[str, str], int]  # refused, by port and limit
    requests: Mapping[Limit, int]  # refused, of the operator API
    hang_ups: int


class Meter:
    """Writes metrics from a registry of its own, so that nothing else in the process shows up."""

    def __init__(
        self,
        guest_counters: Callable[[], Mapping[str, float]],
        *,
        unanswered: Unanswered,
        saving: Saving,
        clock_offset: Callable[[], timedelta],
        durations: Mapping[str, Mapping[tuple[str, ...], Distribution]],
        background: Supervisor,
    ) -> None:
        self._guest_counters = guest_counters
        self._unanswered = unanswered
        self._saving = saving
        self._background = background
        self._clock_offset = clock_offset
        self._reads = ReadCounts()
        self._durations = durations
        self._driver_calls = DriverCallCounts()
        self._counted: Counted | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(self)

    def text(self, counted: Counted | None, driver_calls: DriverCallCounts, reads: ReadCounts) -> bytes:
        """Write all metrics; no counts means that the store could not be read."""
        self._counted = counted
        self._driver_calls = driver_calls
        self._reads = reads
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Metric]:
        """Name nothing beforehand: what there is depends on the fleet."""
        return iter(())

    def _of_saving(self) -> Iterator[Metric]:
        writable = GaugeMetricFamily("forewarn_store_writable", "Whether something can be saved.")
        writable.add_metric([], float(self._saving.possible))
        yield writable
        said = "How often the database has fallen silent since the start."
        yield CounterMetricFamily("forewarn_store_silences", said, value=self._saving.silences)
        said = "How many holds are in memory only, because nothing could be saved."
        yield GaugeMetricFamily("forewarn_unsaved_holds", said, value=self._saving.unsaved_holds)
        said = "How many holds of memory could not be kept when they were to be saved, since the start."
        yield CounterMetricFamily("forewarn_refused_holds", said, value=self._saving.refused_holds)

    def collect(self) -> Iterator[Metric]:
        """Give what is to be written."""
        said = "Whether the store can be read."
        yield GaugeMetricFamily("forewarn_store_readable", said, value=0.0 if self._counted is None else 1.0)
        yield from self._of_saving()
        offset = GaugeMetricFamily(
            "forewarn_clock_offset_seconds", "How far service time is ahead of the system's."
        )
        offset.add_metric([], self._clock_offset().total_seconds())
        yield offset
        yield _build_info()
        if self._counted is not None:
            yield from _of_counts(self._counted.counts)
        yield from _of_webhooks(() if self._counted is None else self._counted.webhooks)
        for name, value in self._guest_counters().items():
            said = f"Guest endpoint: {name.replace('_', ' ')}."
            yield CounterMetricFamily(f"forewarn_guest_{name}", said, value=value)
        said = "Connections that a limit has refused."
        refused = CounterMetricFamily("forewarn_connections_refused", said, labels=["plane", "limit"])
        for labels, value in self._unanswered.connections.items():
            refused.add_metric(labels, value)
        yield refused
        said = "Requests to the operator API that a limit has refused."
        requests = CounterMetricFamily("forewarn_requests_refused", said, labels=["limit"])
        for limit, value in self._unanswered.requests.items():
            requests.add_metric([limit], value)
        yield requests
        said = "Clients of the operator API that hung up before they were answered."
        yield CounterMetricFamily("forewarn_operator_hang_ups", said, value=self._unanswered.hang_ups)
        yield from _of_background(self._background)
        yield from _of_reads(self._reads)
        yield from _of_driver_calls(self._driver_calls)
        for what, (said, named) in _DURATIONS.items():
            yield _histogram(f"forewarn_{what}_duration_seconds", said, named, self._durations[what])


_DURATIONS = {
    "request": (
        "How long calls of the operator API took, by operation and class of status.",
        ("operation", "status"),
    ),
    "store": ("How long transactions of the store took, from opening to commit.", ("kind",)),
    "driver_call": ("How long calls of drivers took that are made in lanes.", ("driver", "verb")),
}


def _build_info() -> Metric:
    info = GaugeMetricFamily("forewarn_build_info", "What runs.", labels=["version", "python"])
    info.add_metric([version(), platform.python_version()], 1.0)
    return info


def _of_counts(counts: Counts) -> Iterator[Metric]:
    for what, by_state in counts.present.items():
        yield _gauge(f"forewarn_{what}", f"How many {what} there are.", "state", by_state)
    said = "How many hosts there are, by who does the work on them."
    yield _gauge("forewarn_hosts_by_driver", said, "driver", counts.drivers)
    said = "1 if the driver of a host reaches it, 0 if not; only of hosts whose drivers can tell."
    yield _gauge("forewarn_host_reachable", said, "host", counts.reachable)
    yield _gauge("forewarn_holds", "How many holds are in force, by what they reach.", "reach", counts.holds)
    said = "For how long the event that should have started first has not, in service time."
    yield GaugeMetricFamily(
        "forewarn_oldest_overdue_start_seconds", said, value=counts.overdue.total_seconds()
    )
    said = "Open orders that wait for a person, such as those announced three times without a start."
    yield GaugeMetricFamily("forewarn_orders_stuck", said, value=counts.stuck)
    for kind, count in counts.tallies.items():
        said = f"Machines told of by records of the kind {kind}."
        yield CounterMetricFamily(f"forewarn_{kind.replace('-', '_')}", said, value=count)


def _of_background(background: Supervisor) -> Iterator[Metric]:
    said = "How often background tasks were started again after an unexpected error."
    restarts = CounterMetricFamily("forewarn_background_restarts", said, labels=["task"])
    for task, count in background.restarts().items():
        restarts.add_metric([task], count)
    yield restarts
    said = "How many background tasks keep failing."
    yield _gauge("forewarn_background_failing", said, "task", background.failing())


def _of_reads(reads: ReadCounts) -> Iterator[Metric]:
    said = "How many lists, exports and plans are being read, and wait for that."
    yield _gauge("forewarn_reads", said, "state", {"running": reads.running, "waiting": reads.waiting})
    yield CounterMetricFamily(
        "forewarn_reads_refused", "Reads that could not begin in time.", value=reads.refused
    )


def _of_driver_calls(calls: DriverCallCounts) -> Iterator[Metric]:
    said = "Calls of drivers that were made in lanes, by what was answered."
    answered = CounterMetricFamily("forewarn_driver_calls", said, labels=["driver", "verb", "answer"])
    for labels, count in sorted(calls.answered.items()):
        answered.add_metric(labels, count)
    yield answered
    said = "How many calls of drivers are being made."
    yield _gauge("forewarn_driver_calls_running", said, "driver", calls.running)
    said = "How many calls of drivers were given up, and have not returned."
    yield _gauge("forewarn_driver_calls_hung", said, "driver", calls.hung)
    said = "How often the process of a driver has died, and was started again."
    crashes = CounterMetricFamily("forewarn_driver_crashes", said, labels=["driver"])
    for driver, count in calls.crashes.items():
        crashes.add_metric([driver], count)
    yield crashes


def _gauge(name: str, said: str, label: str, values: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, said, labels=[label])
    for value, count in values.items():
        gauge.add_metric([value], count)
    return gauge


def _histogram(
    name: str, said: str, labels: Sequence[str], seen: Mapping[tuple[str, ...], Distribution]
) -> Metric:
    histogram = HistogramMetricFamily(name, said, labels=labels)
    for values, taken in seen.items():
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, map(float, taken.up_to), strict=True))
        histogram.add_metric(values, buckets, sum_value=taken.seconds)
    return histogram


def _of_webhooks(views: Sequence[WebhookView]) -> Iterator[Metric]:
    labels = ["webhook", "project"]
    behind = GaugeMetricFamily(
        "forewarn_webhook_behind", "Records that a webhook has not been sent yet.", labels=labels
    )
    failures = GaugeMetricFamily(
        "forewarn_webhook_failures", "Tries in vain since a webhook last took a record.", labels=labels
    )
    for view in views:
        names = [view.webhook.id, view.webhook.project or ""]
        behind.add_metric(names, view.behind)
        failures.add_metric(names, view.webhook.failures)
    yield behind
    yield failures
