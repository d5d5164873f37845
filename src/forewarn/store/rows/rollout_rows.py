"""Rollouts as rows, and back; see `fleet_rows` for the manner."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from forewarn.core.model.event import NoticeSummary
from forewarn.core.model.rollout import (
    DEFAULT_TERMS,
    LastChange,
    Rollout,
    RolloutState,
    RolloutTerms,
    Wave,
    WaveState,
)
from forewarn.core.words import Work
from forewarn.store import tables
from forewarn.store.rows.fleet_rows import Columns, Kept
from forewarn.store.rows.nested import waiting_json, waiting_of
from forewarn.store.rows.times import (
    micros,
    micros_or_none,
    moment,
    moment_or_none,
)

_R = tables.rollouts.c
ROLLOUT_COLUMNS = (
    *(_R.id, _R.number, _R.work, _R.state, _R.hosts, _R.hosts_at_once, _R.gap, _R.aborting),
    *(_R.waves, _R.given_up, _R.waiting, _R.blocked),
    *(_R.terms, _R.by, _R.reason, _R.created_at, _R.ended_at, _R.why, _R.due_at),
)
_MICROSECOND = timedelta(microseconds=1)


def rollout_of(row: Kept) -> Rollout:
    """Read a rollout."""
    id_, number, work, state, hosts, hosts_at_once, gap, aborting, waves, given_up, *rest = row
    waiting, blocked, terms, by, reason, created_at, ended_at, why, due_at = rest
    return Rollout(
        id=id_,
        number=number,
        work=Work(work),
        state=RolloutState(state),
        hosts=tuple(hosts),
        hosts_at_once=hosts_at_once,
        gap=gap * _MICROSECOND,
        aborting=aborting,
        waves=_waves_of(waves),
        abandoned=tuple(given_up),
        waiting=waiting_of(waiting),
        blocked=blocked,
        terms=_terms_of(terms),
        excused=tuple(terms.get("excused", ())),
        version=terms.get("version", 1),
        last_change=_change_of(terms.get("last_word")),
        by=by,
        reason=reason,
        created_at=moment(created_at),
        ended_at=moment_or_none(ended_at),
        why=why,
        due_at=moment_or_none(due_at),
    )


def rollout_row(rollout: Rollout) -> Columns:
    """Write a rollout; one that is over is never due."""
    return {
        "id": rollout.id.upper(),
        "number": rollout.number,
        "work": rollout.work.value,
        "state": rollout.state.value,
        "hosts": list(rollout.hosts),
        "hosts_at_once": rollout.hosts_at_once,
        "gap": rollout.gap // _MICROSECOND,
        "aborting": rollout.aborting,
        "waves": _waves_json(rollout.waves),
        "given_up": list(rollout.abandoned),
        "waiting": waiting_json(rollout.waiting),
        "blocked": rollout.blocked,
        "terms": {
            **_terms_json(rollout.terms),
            "excused": list(rollout.excused),
            "version": rollout.version,
            "last_word": _change_json(rollout.last_change),
        },
        "by": rollout.by,
        "reason": rollout.reason,
        "created_at": micros(rollout.created_at),
        "ended_at": micros_or_none(rollout.ended_at),
        "why": rollout.why,
        "due_at": micros_or_none(rollout.due_at) if rollout.open else None,
    }


def _terms_json(terms: RolloutTerms) -> dict[str, Any]:
    return {
        "driver": terms.driver,
        "heartbeat": _micros(terms.heartbeat),
        "deadline": micros_or_none(terms.deadline),
        "expected": _micros(terms.expected),
        "health": terms.health // _MICROSECOND,
        "require_poll": terms.require_poll,
    }


def _terms_of(json: dict[str, Any]) -> RolloutTerms:
    if not json:  # begun before there were any
        return DEFAULT_TERMS
    return RolloutTerms(
        driver=json["driver"],
        heartbeat=_span(json["heartbeat"]),
        expected=_span(json.get("expected")),
        deadline=moment_or_none(json["deadline"]),
        health=json["health"] * _MICROSECOND,
        require_poll=json["require_poll"],
    )


def _change_json(change: LastChange | None) -> dict[str, Any] | None:
    return None if change is None else {"what": change.what, "by": change.by, "at": micros(change.at)}


def _change_of(json: dict[str, Any] | None) -> LastChange | None:
    return None if json is None else LastChange(what=json["what"], by=json["by"], at=moment(json["at"]))


def _waves_json(waves: Iterable[Wave]) -> list[dict[str, Any]]:
    return [
        {
            "hosts": list(wave.hosts),
            "state": wave.state.value,
            "orders": list(wave.orders),
            "announced_at": micros_or_none(wave.announced_at),
            "started_at": micros_or_none(wave.started_at),
            "ends_about": micros_or_none(wave.ends_about),
            "ended_at": micros_or_none(wave.ended_at),
            "notice": _notice_json(wave.notice),
        }
        for wave in waves
    ]


def _waves_of(json: list[dict[str, Any]]) -> tuple[Wave, ...]:
    return tuple(
        Wave(
            hosts=tuple(wave["hosts"]),
            state=WaveState(wave["state"]),
            orders=tuple(wave["orders"]),
            announced_at=moment_or_none(wave.get("announced_at")),
            started_at=moment_or_none(wave.get("started_at")),
            ends_about=moment_or_none(wave.get("ends_about")),
            ended_at=moment_or_none(wave["ended_at"]),
            notice=_notice_of(wave.get("notice")),
        )
        for wave in json
    )


def _micros(span: timedelta | None) -> int | None:
    return None if span is None else span // _MICROSECOND


def _span(micros_: int | None) -> timedelta | None:
    return None if micros_ is None else micros_ * _MICROSECOND


def _notice_json(notice: NoticeSummary | None) -> list[int | None] | None:
    return None if notice is None else [_micros(notice.least), notice.late, notice.never]


def _notice_of(json: list[int | None] | None) -> NoticeSummary | None:
    if json is None:
        return None
    least, late, never = json
    return NoticeSummary(least=_span(least), late=late or 0, never=never or 0)
