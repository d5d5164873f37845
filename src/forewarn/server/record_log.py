"""A line of the log for each thing that happened: driven by the records, when they are saved."""

import logging

from forewarn.core.redaction import unmarked
from forewarn.core.words import Kind
from forewarn.store.saved import Saved, records_of
from forewarn.wire.texts import write_time

log = logging.getLogger("forewarn.records")

# What a person may have to look after.
GRAVE = frozenset(
    {
        *(
            Kind.ORDER_FAILED,
            Kind.STEP_FAILED,
            Kind.STEP_UNKNOWN,
            Kind.HOST_LOST,
            Kind.HOST_FENCED,
            Kind.PROMISE_BROKEN,
            Kind.UNANNOUNCED_IMPACT,
            Kind.NOTICE_LATE,
            Kind.NOTICE_NEVER,
        ),
        *(Kind.WEBHOOK_FAILING, Kind.CLOCK_JUMPED, Kind.SERVICE_AWAY),
    }
)
# Declared fleets and single steps come by the thousand. The rest happens to orders, events, rollouts, holds
# and tokens, or to the service.
FINE = frozenset({"step", "machine", "group", "host", "project", "history"})
_FINE_KINDS = frozenset({Kind.CLOCK_ADVANCED})
FIELDS = ("number", "project", "group", "host", "machine", "event", "order", "by", "reason")


def level_of(kind: str) -> int:
    """Return how grave a kind of record is."""
    if kind in GRAVE:
        return logging.WARNING
    fine = kind in _FINE_KINDS or kind.partition("-")[0] in FINE
    return logging.DEBUG if fine else logging.INFO


def log_records(saved: Saved) -> None:
    """Log what has been saved; `at` is service time, which need not be the world's."""
    for record in records_of(saved):
        level = level_of(record.kind)
        if log.isEnabledFor(level):
            fields = {name: getattr(record, name) or None for name in FIELDS}
            fields["reason"] = unmarked(record.reason) or None
            fields["at_service_time"] = write_time(record.at)
            # As `log.log` does, but without looking for who calls: that takes a third of the time of a line.
            said = log.makeRecord(
                log.name, level, "", 0, "%s", (str(record.kind),), None, extra={"fields": fields}
            )
            log.handle(said)
