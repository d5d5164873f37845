"""Which words are names: of hosts, people, machines, groups and events."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
)

from forewarn.core.disclosure import Names
from forewarn.core.words import ProjectName
from forewarn.store import tables
from forewarn.store.key_lists import key_list, one_of
from forewarn.store.reads.reader import Reader, chunks
from forewarn.store.rows.stored import name_key

_H, _T, _M, _G, _E, _P = (
    tables.hosts.c,
    tables.tokens.c,
    tables.machines.c,
    tables.groups.c,
    tables.events.c,
    tables.projects.c,
)
_GONE = tables.tombstones.c
_WORDS, _KEYS = key_list("words"), key_list("keys")
_PROJECT: BindParameter[Any] = bindparam("project", type_=Text)
# What is left behind by a host that is removed: old reasons name it.
REMOVED_HOSTS = "hosts"
# Whoever writes a reason may write names in any case.
_HOST, _REMOVED, _PERSON = func.lower(_H.name), func.lower(_GONE.key), func.lower(_T.name)


def _of(kind: str, name: ColumnElement[Any], *where: ColumnElement[bool]) -> Select[Any]:
    return select(literal_column(f"'{kind}'"), name).where(*where)


_NAMES = union_all(
    _of("hosts", _HOST, one_of(_HOST, _KEYS)),
    _of("hosts", _REMOVED, _GONE.kind == literal_column(f"'{REMOVED_HOSTS}'"), one_of(_REMOVED, _KEYS)),
    _of("people", _T.name, _T.project == _PROJECT, one_of(_T.name, _WORDS)),
    _of("others", _PERSON, _T.project.is_distinct_from(_PROJECT), one_of(_PERSON, _KEYS)),
    _of("machines", _M.name, _M.project == _PROJECT, one_of(_M.key, _KEYS)),
    _of("strangers", _M.key, _M.project != _PROJECT, one_of(_M.key, _KEYS)),
    _of("other_groups", _G.name, _G.project != _PROJECT, one_of(_G.name, _WORDS)),
    _of("other_projects", _P.name, _P.name != _PROJECT, one_of(_P.name, _WORDS)),
    _of("groups", _G.name, _G.project == _PROJECT, one_of(_G.name, _WORDS)),
    _of(
        "events",
        _E.id,
        tables.IS_LISTED_EVENT,
        one_of(_E.id, _WORDS),
        select(_G.project).where(_G.name == _E.group_name).scalar_subquery() == _PROJECT,
    ),
)


class NameReads(Reader):
    """What words mean."""

    def among(self, words: Collection[str], *, project: ProjectName) -> Names:
        """Return which of some words are names, as a project would tell them apart."""
        found: dict[str, set[str]] = {}
        for chunk in chunks(sorted(words)):
            keys = sorted({name_key(word) for word in chunk})
            for kind, name in self._all(_NAMES, {"words": chunk, "keys": keys, "project": project}):
                found.setdefault(kind, set()).add(name)
        return Names(**{kind: frozenset(names) for kind, names in found.items()})
