"""What must hold of callers: their own budgets, and whose sessions their calls are in. Pure over the facts."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.facts import RELEASED, Facts


def callers_are_charged_exactly(facts: Facts) -> Iterator[str]:
    """What a caller has spent is what its windows cost: nothing that was settled is forgotten, nothing counts twice (ATT-2)."""
    for caller in facts.callers:
        if caller.spent < caller.settled:
            yield f"{caller.scope} has spent {caller.spent}; its settled windows cost {caller.settled}"
        if caller.spent > caller.logged:
            yield f"{caller.scope} has spent {caller.spent}; all its sealed windows cost {caller.logged}"


def bound_calls_stay_with_their_key(facts: Facts) -> Iterator[str]:
    """No call ends in a session that another key began (ATT-3)."""
    owner: dict[str, str] = {}
    for call in facts.calls:
        key = call.client.split(".")[0]
        if call.status == RELEASED and call.session_id and owner.setdefault(call.session_id, key) != key:
            yield f"call {call.number} of {key} is in {call.session_id}, which {owner[call.session_id]} began"
