"""Rehearsals in every store."""

from datetime import timedelta
from typing import Any

from forewarn.core.basic_types import ProjectName
from forewarn.core.rehearsal_rules import Fault, FaultKind, SavedRehearsal
from forewarn.core.scope import Scope
from forewarn.store.store import Store
from tests.contract.samples import NOW, SECOND
from tests.helpers.database.transactions import writing, writing_as

LAB, SHOP = ProjectName("lab"), ProjectName("shop")


def rehearsal(id_: str, project: ProjectName = LAB, **more: Any) -> SavedRehearsal:
    fixed = {"scenario": "mine", "machines": {"b": "web-1", "a": "web-0"}, "by": "ann", "begun_at": NOW}
    return SavedRehearsal(**{**fixed, "project": project, "id": id_, "renewed_at": NOW, **more})


def save(store: Store, *rehearsals: SavedRehearsal) -> None:
    with writing(store) as tx:
        for each in rehearsals:
            tx.rehearsals.save(each)


def kept(store: Store) -> list[SavedRehearsal]:
    with store.read() as snapshot:
        return list(snapshot.rehearsals.all())


def test_a_rehearsal_is_read_back_with_its_machines_in_order(store: Store) -> None:
    fault = Fault(kind=FaultKind.SLOW, machines=("web-0",), since=NOW, calls=3, delay=SECOND, number=7)
    whole = rehearsal("one", faults=(fault, Fault(kind=FaultKind.VANISHED)), ended_by="bert")
    save(store, whole)
    assert kept(store) == [whole]
    assert list(kept(store)[0].machines.values()) == ["web-1", "web-0"]


def test_a_renewed_rehearsal_is_replaced_also_by_a_project(store: Store) -> None:
    again = rehearsal("one", renewed_at=NOW + SECOND)
    save(store, rehearsal("one"), rehearsal("one", SHOP))
    with writing_as(store, Scope(caller=LAB)) as tx:
        tx.rehearsals.save(again)
    assert kept(store) == [rehearsal("one", SHOP), again]


def test_one_rehearsal_can_be_removed_and_so_can_old_ended_ones(store: Store) -> None:
    ago = NOW - timedelta(days=2)
    goes_on = rehearsal("goes on", renewed_at=ago)
    ended = [rehearsal(id_, renewed_at=at, ended_by="ann") for id_, at in (("long ago", ago), ("now", NOW))]
    save(store, goes_on, *ended, rehearsal("over"), rehearsal("over", SHOP))
    with writing(store) as tx:
        tx.rehearsals.remove(LAB, "over")
        tx.rehearsals.remove_ended(before=NOW)
    assert kept(store) == [goes_on, ended[1], rehearsal("over", SHOP)]
