"""What ends with a project: its tokens and its webhooks.

Otherwise they would be those of the next project of the same name.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from forewarn.control.push.webhooks import MOST_WEBHOOKS, named
from forewarn.core import access
from forewarn.core.access import Token
from forewarn.core.draft import Draft
from forewarn.core.push import Webhook
from forewarn.core.words import DEFAULT_PROJECT, Kind, ProjectName
from forewarn.store.batch import Transaction
from forewarn.store.queries.callers import WebhookQueries
from forewarn.store.snapshots import Snapshot

WHY = "its project is removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What projects leave behind."""

    tokens: Sequence[Token]
    webhooks: Sequence[Webhook]

    def lines(self) -> Iterator[str]:
        """Write each in a line, as the changes of a fleet are."""
        yield from (f"- token {access.describe(token)}" for token in self.tokens)
        yield from (f"- {named(webhook)}" for webhook in self.webhooks)


def left_behind(snapshot: Snapshot, draft: Draft) -> Leaving:
    """Find what the projects that a draft removes leave behind; the default one is always there."""
    gone = draft.base.projects.keys() - draft.projects.keys() - {DEFAULT_PROJECT}
    if not gone:
        return Leaving(tokens=(), webhooks=())
    return Leaving(
        tokens=[token for token in snapshot.tokens.in_force() if token.project in gone],
        webhooks=_own_webhooks(snapshot.webhooks, gone),
    )


def let_go(tx: Transaction, draft: Draft, leaving: Leaving, *, by: str) -> None:
    """Revoke the tokens and remove the webhooks."""
    for token in leaving.tokens:
        tx.tokens.save(access.revoke(token.name, [token], now=draft.now))
        draft.record(Kind.TOKEN_REVOKED, None, by=by, reason=f"{access.describe(token)}: {WHY}")
    for webhook in leaving.webhooks:
        tx.webhooks.remove(webhook.id)
        draft.record(Kind.WEBHOOK_REMOVED, webhook, by=by, reason=f"{named(webhook)}: {WHY}")


def _own_webhooks(webhooks: WebhookQueries, projects: Collection[ProjectName]) -> list[Webhook]:
    every, _ = webhooks.page(project=None, after=None, limit=MOST_WEBHOOKS)
    return [webhook for webhook in every if webhook.owner in projects]
