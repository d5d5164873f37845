"""Each change of a listed value is announced by a record with its topic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forewarn.core.model.record import Record
from forewarn.core.topics import Topic, topics_of
from forewarn.wire.answers.record_answers import RecordAnswer
from tests.helpers.service.counts import seeds
from tests.helpers.service.served import Api, app_of
from tests.histories.followed_histories import FOLLOWED_SITUATIONS, FollowedHistories
from tests.histories.histories import play
from tests.histories.situations import Reached

Listed = Mapping[str, Mapping[str, Any]]

# The key of each list.
LISTS: Mapping[Topic, str] = {
    Topic.MACHINES: "vm_id",
    Topic.GROUPS: "name",
    Topic.HOSTS: "name",
    Topic.PROJECTS: "name",
    Topic.EVENTS: "id",
    Topic.ORDERS: "id",
    Topic.ROLLOUTS: "id",
    Topic.HOLDS: "id",
}
# Polls, connection tests and time leave no records. An incarnation also has the topic of events.
UNRECORDED = {
    (Topic.MACHINES, "last_seen"),
    (Topic.GROUPS, "incarnation"),
    (Topic.HOSTS, "reached_at"),
    (Topic.EVENTS, "armed_at"),
}
# A reason may end automatically, and a driver may report progress.
BY_ITSELF = {
    *((topic, field) for topic in (Topic.ORDERS, Topic.ROLLOUTS) for field in ("waiting", "waiting_until")),
    *((Topic.ORDERS, field) for field in ("stages", "steps", "host_steps")),
}
# A poll names no machine, and places are reserved for all machines of an order together.
UNNAMED = {"last_seen", "bound_for"}


class AnnouncedHistories(FollowedHistories):
    """A history that compares each change of a list with the topics of the records."""

    def __init__(self, seed: int, reached: Reached) -> None:
        super().__init__(seed, reached)
        self._listed: Mapping[Topic, Listed] = {}
        self._looked_at = self.service.clock.now()

    def follow(self, records: Sequence[Record]) -> None:
        before, self._listed = self._listed, self.lists()
        told = {topic for record in records for topic in topics_of(record.kind)}
        was, self._looked_at = self._looked_at, self.service.clock.now()
        has_passed = was != self._looked_at
        unrecorded = UNRECORDED | BY_ITSELF if has_passed or not records else UNRECORDED
        for topic in before.keys() - told:
            changed = {*_changes(before[topic], self._listed[topic])}
            unexplained = {field for field in changed if (topic, field) not in unrecorded}
            assert not unexplained, f"{topic} {unexplained}: only {sorted({each.kind for each in records})}"
        if before:
            self.check_machines(before, records)

    def check_machines(self, before: Mapping[Topic, Listed], records: Sequence[Record]) -> None:
        """A record with the topic of machines must name the machines that it concerns."""
        told = [RecordAnswer.of(each) for each in records if Topic.MACHINES in topics_of(each.kind)]
        events = before[Topic.EVENTS] | self._listed[Topic.EVENTS]  # type: ignore[operator]
        old, new = before[Topic.MACHINES], self._listed[Topic.MACHINES]
        for id_ in old.keys() | new.keys():
            states = [listed[id_] for listed in (old, new) if id_ in listed]
            if len(states) == 1 or {*_changes({id_: states[0]}, {id_: states[1]})} - UNNAMED:
                found = any(_concerns(record, machine, events) for record in told for machine in states)
                assert found, f"{states}: only {told}"

    def lists(self) -> Mapping[Topic, Listed]:
        overview = Api(app_of(self.service))("GET", "/v1/overview").json()
        return {topic: {each[key]: each for each in overview[topic]} for topic, key in LISTS.items()}


def _changes(before: Listed, after: Listed) -> Iterator[str]:
    """Return the changed fields, or whether a value was added or removed."""
    for id_ in before.keys() | after.keys():
        old, new = before.get(id_), after.get(id_)
        if old is None or new is None:
            yield "added" if old is None else "removed"
        else:
            yield from (field for field in old if old[field] != new[field])


def _concerns(record: RecordAnswer, machine: Mapping[str, Any], events: Listed) -> bool:
    """Return whether a record concerns a machine, according to docs/reference."""
    if record.machine:
        return (record.project, record.machine) == (machine["project"], machine["name"])
    if record.event:
        return record.event in events and machine["name"] in events[record.event]["resources"]
    if record.group:
        return bool(record.group == machine["group"])
    if record.host:
        return record.host in (machine["host"], machine["bound_for"])
    return machine["group"] is None if record.project else True


def test_each_change_of_a_list_is_announced_by_a_record_with_its_topic() -> None:
    play(AnnouncedHistories, seeds(4, long=200), Reached(FOLLOWED_SITUATIONS))
