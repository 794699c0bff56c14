"""How a session stands, from a reply of ``lua/standing.lua``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.domain.budget import Micros
from interlock.domain.ids import WindowId
from interlock.domain.session.standing import Point, Standing, is_used_up
from interlock.domain.session.state import Status
from interlock.session.store import dag_text, records
from interlock.session.terms import terms_from_json


def standing_from(reply: Sequence[Any], windows: Sequence[WindowId]) -> Standing | None:
    """Return how a session stands; ``None`` for one that is not there. *windows* are those that were asked for."""
    if not reply:
        return None
    terms_data, policy, status, budget, nodes, top, open_ends, dag, latest, *outcomes = reply
    terms, tip = terms_from_json(terms_data), WindowId(latest.decode()) if latest else None
    points = {}
    for window, outcome in zip((tip, *windows), outcomes, strict=True):
        if window is not None and outcome:
            found = records.outcome_from_text(outcome, terms.ancestors)
            points[window] = Point(found.number, found.hmac, found.path_budget, found.continuation_id)
    return Standing(
        terms=terms,
        policy_hash=policy.decode(),
        status=Status(int(status)),
        budget=Micros(int(budget)),
        used_up=is_used_up(terms.limits, windows=int(nodes), longest=int(top), open_ends=int(open_ends)),
        tip=tip,
        links=dag_text.links_from(dag, int(nodes)),
        points={window: point for window, point in points.items() if point.hmac},
    )
