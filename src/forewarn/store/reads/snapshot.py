"""The snapshots of control's ports, put together from their parts."""

from forewarn.store.reads.answer_reads import AnswerReads
from forewarn.store.reads.due_reads import DueReads
from forewarn.store.reads.feed_reads import FeedReads
from forewarn.store.reads.lists import Lists
from forewarn.store.reads.lookups import Lookups
from forewarn.store.reads.name_reads import NameReads
from forewarn.store.reads.promise_reads import PromiseReads
from forewarn.store.reads.record_reads import RecordReads
from forewarn.store.reads.rehearsal_reads import RehearsalReads
from forewarn.store.reads.rollout_reads import RolloutReads
from forewarn.store.reads.session_reads import SessionReads
from forewarn.store.reads.slice_reads import SliceReads
from forewarn.store.reads.summary_reads import SummaryReads
from forewarn.store.reads.token_reads import TokenReads
from forewarn.store.reads.unscoped_reads import UnscopedReads
from forewarn.store.reads.webhook_reads import WebhookReads
from forewarn.store.reads.work_lists import WorkLists


class ProjectSnapshot(
    SliceReads, Lookups, Lists, WorkLists, NameReads, RecordReads, WebhookReads, SummaryReads, PromiseReads
):
    """What can be read for a project in one transaction: nothing that is not here can be reached for one."""


class SqlSnapshot(
    ProjectSnapshot,
    UnscopedReads,
    TokenReads,
    SessionReads,
    FeedReads,
    DueReads,
    RolloutReads,
    AnswerReads,
    RehearsalReads,
):
    """All that can be read in one transaction."""
