"""What groups and orders ask for, kept as JSON; what they do not ask for is left out."""

from datetime import timedelta
from typing import Any

from forewarn.core.model.event import Deferral
from forewarn.core.model.group import GroupPolicy
from forewarn.core.model.order import OrderTerms
from forewarn.core.words import ApprovalRule
from forewarn.store.rows.times import micros, moment

Json = dict[str, Any]


def policy_json(policy: GroupPolicy) -> Json:
    """Write what a group asks for."""
    if policy == NO_POLICY:
        return {}
    return _without_none(
        {
            "approval": policy.approval.value,
            "auto_approve": policy.auto_approve,
            "notice": _seconds(policy.notice),
            "terminate_notice": _seconds(policy.terminate_notice),
            "degrade_notice": _seconds(policy.degrade_notice),
            "budget": policy.budget,
            "defer": _seconds(policy.defer),
        }
    )


def policy_of(json: Json) -> GroupPolicy:
    """Read what a group asks for."""
    if not json:
        return NO_POLICY
    return GroupPolicy(
        approval=ApprovalRule(json["approval"]),
        auto_approve=json["auto_approve"],
        notice=_span(json.get("notice")),
        terminate_notice=_span(json.get("terminate_notice")),
        degrade_notice=_span(json.get("degrade_notice")),
        budget=json["budget"],
        defer=_span(json.get("defer")) or timedelta(),
    )


def terms_json(terms: OrderTerms) -> Json:
    """Write the terms of an order."""
    if terms == NO_TERMS:
        return {}
    return _without_none(
        {
            "emergency": terms.emergency,
            "notice": _seconds(terms.notice),
            "at_once": terms.at_once,
            "heartbeat": _seconds(terms.heartbeat),
            "deadline": None if terms.deadline is None else micros(terms.deadline),
            "expected": _seconds(terms.expected),
            "paused": terms.paused or None,
            "rollout": terms.rollout,
            "rehearsal": terms.rehearsal or None,
        }
    )


def terms_of(json: Json) -> OrderTerms:
    """Read the terms of an order."""
    if not json:
        return NO_TERMS
    return OrderTerms(
        emergency=json["emergency"],
        notice=_span(json.get("notice")),
        at_once=json["at_once"],
        heartbeat=_span(json.get("heartbeat")),
        deadline=moment(json["deadline"]) if "deadline" in json else None,
        expected=_span(json.get("expected")),
        paused=json.get("paused", ""),
        rollout=json.get("rollout"),
        rehearsal=json.get("rehearsal", ""),
    )


def deferral_json(deferral: Deferral | None) -> Json | None:
    """Write how an event was put off."""
    if deferral is None:
        return None
    written = {"by": deferral.by, "at": micros(deferral.at), "until": micros(deferral.until)}
    if deferral.since is not None:
        written["since"] = micros(deferral.since)
    if deferral.asked is not None:
        written["asked"] = _seconds(deferral.asked)
    return written


def deferral_of(json: Json | None) -> Deferral | None:
    """Read how an event was put off."""
    if json is None:
        return None
    return Deferral(
        by=json["by"],
        at=moment(json["at"]),
        until=moment(json["until"]),
        since=moment(json["since"]) if "since" in json else None,
        asked=_span(json.get("asked")),
    )


NO_POLICY = GroupPolicy()
NO_TERMS = OrderTerms()


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _without_none(json: Json) -> Json:
    return {key: value for key, value in json.items() if value is not None}
