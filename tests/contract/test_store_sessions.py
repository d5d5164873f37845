"""Browser sessions in every store, and a counter of their changes."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from forewarn.core.session_cookies import BrowserSession
from forewarn.store.store import Store
from tests.contract.samples import NOW, SECOND, session
from tests.contract.test_store_access import keep, token
from tests.contract.test_store_answers import fail_after
from tests.helpers.database.transactions import writing


def begin(store: Store, *sessions: BrowserSession) -> None:
    with writing(store) as tx:
        for each in sessions:
            tx.sessions.save(each)


def kept(store: Store) -> Sequence[BrowserSession]:
    with store.read() as snapshot:
        return sorted(snapshot.sessions.all(), key=lambda each: each.created_at)


def changes(store: Store) -> int:
    with store.read() as snapshot:
        return snapshot.sessions.changes()


def test_sessions_come_back_as_they_were_saved(store: Store) -> None:
    begin(store, session(2), session(1))
    assert kept(store) == [session(1), session(2)]


def test_a_tokens_sessions_are_listed_oldest_first(store: Store) -> None:
    twin = session(2, digest="0" * 64)
    begin(store, session(3), session(1), session(2), twin, session(4, token="of-bert"))
    with store.read() as snapshot:
        assert snapshot.sessions.of_token("of-anna") == [session(1), twin, session(2), session(3)]
        assert snapshot.sessions.of_token("nobody's") == []


def test_sessions_are_removed_by_their_digests(store: Store) -> None:
    begin(store, session(1), session(2), session(3))
    with writing(store) as tx:
        tx.sessions.remove([session(1).digest, session(3).digest, "unknown"])
    assert kept(store) == [session(2)]


def test_expired_sessions_and_those_without_a_valid_token_are_removed(store: Store) -> None:
    keep(store, token(1, digest="of-anna"), token(2, digest="of-bert", revoked_at=NOW))
    over = session(1, expires_at=NOW)
    lasting = session(2, expires_at=NOW + timedelta(microseconds=1))
    begin(store, over, lasting, session(3, token="of-bert"), session(4, token="unknown"))
    with writing(store) as tx:
        tx.sessions.remove_ended(NOW)
    assert kept(store) == [lasting]


def test_the_counter_counts_exactly_the_changes(store: Store) -> None:
    keep(store, token(1, digest="of-anna"))
    seen = [changes(store)]
    begin(store, session(1))
    seen.append(changes(store))
    # The next one replaces the first, and began at the same time.
    with writing(store) as tx:
        tx.sessions.remove([session(1).digest])
        tx.sessions.save(session(1, digest="another"))
    seen.append(changes(store))
    with writing(store) as tx:
        tx.sessions.remove_ended(NOW + timedelta(days=8))
    seen.append(changes(store))
    assert seen == sorted(set(seen))
    with writing(store) as tx:
        tx.sessions.remove([])
        tx.sessions.remove_ended(NOW + timedelta(days=9))
        tx.time.set_reached(NOW + SECOND)
    assert changes(store) == seen[-1]


def test_a_rolled_back_change_is_not_counted(store: Store) -> None:
    before = changes(store)
    with pytest.raises(LookupError), writing(store) as tx:
        fail_after(tx.sessions.save(session(1)))
    assert (kept(store), changes(store)) == ([], before)
