"""Results of sub-agents, as the caller of a window names them (SPEC-012 §8.1, §10.2; PRV-3, AGT-4).

``context.linked_results`` reads them. A caller's own words for a result are never taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain import ids
from interlock.domain.errors import Refused, invalid

MOST_RESULTS = 100
"""Results of one call (session.proto)."""

LONGEST_SUB_QUERY = 2048
"""Characters."""

_HMAC = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_FIELDS = {"session_id", "hmac", "sub_query"}


@dataclass(frozen=True)
class NamedResult:
    """A result as the caller names it, by two headers of the sub-agent's response."""

    session_id: str
    hmac: str
    sub_query: str


def read(place: str, given: Any) -> tuple[NamedResult, ...]:
    """Return the results that the list *given* names. Refused with INVALID_PARAMETER, naming the place."""
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise _bad(place, "must be a list of objects")
    return checked(place, [_named(f"{place}[{number}]", item) for number, item in enumerate(given)])


def of_messages(given: Iterable[sidecar_pb2.SubAgentResult]) -> tuple[NamedResult, ...]:
    """Return the results that a gRPC message names."""
    return checked("sub_agent_results", [NamedResult(one.session_id, one.hmac, one.sub_query) for one in given])


def checked(place: str, named: Sequence[NamedResult]) -> tuple[NamedResult, ...]:
    """Return *named* when every one is well formed and none is there twice."""
    if len(named) > MOST_RESULTS:
        raise _bad(place, f"must name at most {MOST_RESULTS} results")
    for number, one in enumerate(named):
        ids.check("crp_sess_", one.session_id)
        if not _HMAC.fullmatch(one.hmac):
            raise _bad(f"{place}[{number}].hmac", "must be CRP-Provenance-HMAC of the sub-agent's answer")
        if len(one.sub_query) > LONGEST_SUB_QUERY:
            raise _bad(f"{place}[{number}].sub_query", f"must be at most {LONGEST_SUB_QUERY} characters")
    if len({(one.session_id, one.hmac) for one in named}) != len(named):
        raise invalid("DUPLICATE_RESULT", "a result is named twice", param=place)
    return tuple(named)


def sub_queries(place: str, given: Any) -> tuple[str, ...]:
    """Return the sub-queries of a list. Refused with INVALID_PARAMETER."""
    if not isinstance(given, list | tuple) or len(given) > MOST_RESULTS:
        raise _bad(place, f"must be a list of at most {MOST_RESULTS} strings")
    for number, one in enumerate(given):
        if not isinstance(one, str) or not one.strip() or len(one) > LONGEST_SUB_QUERY:
            raise _bad(f"{place}[{number}]", f"must be a string of 1 to {LONGEST_SUB_QUERY} characters")
    return tuple(given)


def _named(place: str, item: dict[str, Any]) -> NamedResult:
    values = {name: item.get(name, "") for name in _FIELDS}
    if item.keys() - _FIELDS or not all(isinstance(value, str) for value in values.values()):
        raise _bad(place, "must be an object of the strings session_id, hmac and sub_query")
    return NamedResult(**values)


def _bad(param: str, expected: str) -> Refused:
    return invalid("INVALID_PARAMETER", f"{param} {expected}", param=param)
