"""Promises: what became of the notice that machines were promised."""

import re

from forewarn.api.declared import declared, maybe
from forewarn.api.queries import ListQuery
from forewarn.api.request_fields import LINE
from forewarn.api.routing import ApiRouter
from forewarn.api.services import CallerReading
from forewarn.core.access import Right
from forewarn.core.errors import Invalid
from forewarn.wire.answers.answer import Page
from forewarn.wire.answers.record_answers import PromiseAnswer
from forewarn.wire.fields import Field
from forewarn.wire.texts import shown

router = ApiRouter("promises")

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def _month(value: object) -> str:
    text = LINE.read(value)
    if not _MONTH.fullmatch(text):
        raise Invalid(f"expected a month such as 2026-11, got {shown(value)}")
    return text


MONTH = Field(read=_month, schema={"type": "string", "pattern": f"^{_MONTH.pattern}$"})


@declared
class PromisesQuery(ListQuery):
    """Which promises."""

    month: str | None = maybe(MONTH, "Only of this month, in UTC, as 2026-11.")


@router.call("GET /v1/promises", "List what became of promises", right=Right.SEE, errors=(404,))
def list_promises(query: PromisesQuery, reads: CallerReading) -> Page[PromiseAnswer]:
    """List by project and month how many machines got their notice in time, late or never.

    `broken` counts the records of kind `promise-broken`, `unannounced` those of `unannounced-impact`. What
    was simulated, also in a rehearsal, is counted apart. These counts stay when old records are removed.
    """
    found, after = reads.narrowed(query.project).views.promises(
        month=query.month, after=query.after, limit=query.limit
    )
    return Page(kind=PromiseAnswer, items=[PromiseAnswer.like(each) for each in found], next=after)
