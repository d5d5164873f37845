"""The snapshot of control's ports, put together from its parts."""

from forewarn.store.feed import Feed
from forewarn.store.lists import Lists
from forewarn.store.lookups import Lookups
from forewarn.store.rollouts import RolloutReads
from forewarn.store.schedule import Schedule
from forewarn.store.slices import Slices
from forewarn.store.tail import Tail
from forewarn.store.tokens import Tokens
from forewarn.store.webhooks import WebhookLists


class SqlSnapshot(Slices, Lookups, Lists, Tokens, Feed, Tail, Schedule, WebhookLists, RolloutReads):
    """All that can be read in one transaction."""
