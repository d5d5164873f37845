"""The agent's metrics, in the text format of Prometheus."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "forewarn_agent_"

Counts: TypeAlias = dict[tuple[str, ...], float]  # by label values

_COUNTERS = {
    "events": ("Events for this machine that the agent has seen.", ("type",)),
    "handlers": ("Attempts of handlers that have ended.", ("handler", "side", "ending")),
    "handler_seconds": ("Seconds that handlers ran, over all attempts.", ("handler", "side")),
    "approvals": ("Events that the agent has approved.", ()),
    "unreadable": ("Events and statuses that the agent could not read.", ("what",)),
    "documents": ("Documents that differed from the previous one.", ()),
    "troubles": ("How often the endpoint has stopped answering.", ()),
}
_GAUGES = {
    "open_events": "Events that are not over yet.",
    "held": "Events that this machine does not approve because a handler has failed.",
    "draining": "Whether load balancers should send this machine no work.",
    "endpoint_answers": "Whether the metadata endpoint answers.",
    "journal_writable": "Whether the journal can be written.",
    "seconds_left": "Seconds until the next event for this machine may start, 0 after its start. "
    "Absent without an event.",
    "last_poll_age_seconds": "Seconds since the endpoint last answered a poll. An endpoint may hold a poll "
    "for a minute. Absent before the first answer.",
}


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """The agent's counters."""

    _counts: dict[str, Counts] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))

    def count(self, what: str, *labels: str, by: float = 1.0) -> None:
        """Increment a counter."""
        self._counts[what][labels] += by

    def counted(self, what: str, *labels: str) -> float:
        """Return the value of a counter."""
        return self._counts[what].get(labels, 0.0)

    def text(self, gauges: Mapping[str, float | None]) -> bytes:
        """Return all metrics as text, with the current values of gauges; None omits a gauge."""
        # Imported at the first request, because most agents are never scraped.
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import generate_latest

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_MetricCollector(self._counts, gauges))
        return generate_latest(registry)


class _MetricCollector:
    """A collector of all metrics."""

    def __init__(self, counts: Mapping[str, Counts], gauges: Mapping[str, float | None]) -> None:
        self._counts = counts
        self._gauges = gauges

    def describe(self) -> "Iterator[Metric]":
        return iter(())

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, documentation in _GAUGES.items():
            yield GaugeMetricFamily(PREFIX + name, documentation, value=self._gauges[name])
        for name, (documentation, labels) in _COUNTERS.items():
            family = CounterMetricFamily(PREFIX + name, documentation, labels=labels)
            counts = self._counts.get(name) or ({} if labels else {(): 0.0})
            for values, count in counts.items():
                family.add_metric(values, count)
            yield family
