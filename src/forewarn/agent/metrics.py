"""What the agent counts, in the text format of Prometheus."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PREFIX = "forewarn_agent_"

Counts: TypeAlias = dict[tuple[str, ...], float]  # by the values of their labels

_COUNTERS = {
    "events": ("Events that were taken up.", ("type",)),
    "handlers": ("Attempts of handlers that ended.", ("handler", "side", "ending")),
    "handler_seconds": ("How long handlers took, all attempts together.", ("handler", "side")),
    "approvals": ("Events that were approved.", ()),
    "unreadable": ("Events, and statuses of events, that could not be read.", ("what",)),
    "documents": ("Documents that differed from the one before.", ()),
    "troubles": ("Times that the endpoint ceased to answer.", ()),
}
_GAUGES = {
    "open_events": "Events that are taken up and not over.",
    "held": "Events that this machine does not approve, because a handler failed.",
    "draining": "Whether this machine should get no work.",
    "endpoint_answers": "Whether the metadata endpoint answers.",
    "journal_writable": "Whether the journal can be written.",
    "seconds_left": "Seconds until the first event for this machine may start, 0 once it has; none: absent.",
    "last_poll_age_seconds": "Seconds since the endpoint last answered a poll; absent before the first. "
    "An endpoint may hold one for a minute.",
}


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """Counts that only grow."""

    _counts: dict[str, Counts] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))

    def count(self, what: str, *labels: str, by: float = 1.0) -> None:
        """Count something that happened."""
        self._counts[what][labels] += by

    def counted(self, what: str, *labels: str) -> float:
        """Return how often something happened."""
        return self._counts[what].get(labels, 0.0)

    def text(self, gauges: Mapping[str, float | None]) -> bytes:
        """Return all metrics as text, with the present values of gauges; those without one are absent."""
        # Loaded at the first request: most agents are never measured.
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import generate_latest

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Collected(self._counts, gauges))
        return generate_latest(registry)


class _Collected:
    """All metrics, for the registry."""

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
