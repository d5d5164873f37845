"""Webhooks in every store."""

from dataclasses import replace
from typing import Any

from forewarn.core.basic_types import Kind, ProjectName
from forewarn.core.scope import Scope
from forewarn.core.webhook_rules import Webhook, WebhookId
from forewarn.store.store import Store
from tests.contract.samples import NOW, SECOND
from tests.helpers.database.transactions import writing


def webhook(number: int, **more: Any) -> Webhook:
    defaults: dict[str, Any] = {
        "url": "https://ops.example/hook",
        "project": None,
        "kinds": frozenset(),
        "secret": "whsec_AAAA",
        "by": "test",
        "created_at": NOW,
        "delivered": number,
    }
    return Webhook(id=WebhookId(f"BBBBBBBB-0000-4000-8000-{number:012X}"), number=number, **defaults | more)


def save(store: Store, *webhooks: Webhook) -> None:
    with writing(store) as tx:
        for each in webhooks:
            tx.webhooks.save(each)


def test_a_webhook_is_read_back_unchanged(store: Store) -> None:
    whole = webhook(
        1,
        project=ProjectName("a"),
        kinds=frozenset({Kind.EVENT_SCHEDULED, Kind.EVENT_STARTED}),
        delivered=7,
        failures=3,
        failing_since=NOW + SECOND,
        error="it answered 500",
    )
    save(store, whole)
    with store.read() as snapshot:
        assert snapshot.webhooks.find(whole.id) == whole
        assert snapshot.webhooks.find(WebhookId(whole.id.lower())) == whole
        assert snapshot.webhooks.find(WebhookId("nobody")) is None


def test_a_known_webhook_is_replaced(store: Store) -> None:
    first = webhook(1)
    later = replace(first, delivered=9)
    save(store, first, later)
    with store.read() as snapshot:
        assert snapshot.webhooks.page(project=None, after=None, limit=10) == ([later], None)
        assert snapshot.webhooks.count() == 1


def test_webhooks_are_listed_oldest_first_page_by_page(store: Store) -> None:
    one, two, three = webhook(1), webhook(2, project=ProjectName("a")), webhook(3)
    save(store, three, one, two)
    with store.read() as snapshot:
        page, after = snapshot.webhooks.page(project=None, after=None, limit=2)
        assert page == [one, two]
        assert snapshot.webhooks.page(project=None, after=after, limit=2) == ([three], None)
        assert snapshot.webhooks.page(project=ProjectName("a"), after=None, limit=2) == ([two], None)


def test_a_removed_webhook_is_gone(store: Store) -> None:
    save(store, webhook(1), webhook(2))
    with writing(store) as tx:
        tx.webhooks.remove(webhook(1).id)
    with store.read() as snapshot:
        assert snapshot.webhooks.page(project=None, after=None, limit=10) == ([webhook(2)], None)


def test_a_project_finds_only_its_own_webhooks(store: Store) -> None:
    a, b = ProjectName("a"), ProjectName("b")
    mine, theirs = webhook(1, project=a, owner=a), webhook(2, project=b, owner=b)
    save(store, mine, theirs, webhook(3, project=a))
    with store.scoped(Scope(caller=a)).read() as snapshot:
        assert snapshot.webhooks.page(project=None, after=None, limit=10) == ([mine], None)
        assert snapshot.webhooks.find(mine.id) == mine
        assert snapshot.webhooks.find(theirs.id) is None
        assert (snapshot.webhooks.count(owner=a), snapshot.webhooks.count()) == (1, 3)
    with store.read() as snapshot:
        assert len(snapshot.webhooks.page(project=a, after=None, limit=10)[0]) == 2
