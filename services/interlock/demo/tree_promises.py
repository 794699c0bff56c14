"""The promises of the tree demonstration. A run that breaks one fails, and each broken promise is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlock.api.session.v1 import session_pb2
from interlock.demo.tree_script import SPECIALISTS, SYNTHESIS
from interlock.demo.tree_view import agent_name, breaker_state

HALTED = 451
NEVER = frozenset({"crp-session-token", "crp-set-session", "crp-context-etag", "crp-context-quality-tier"})
"""Headers that must not cross a hop (SPEC-012 §3.3)."""


def broken(
    steps: Sequence[Mapping[str, Any]],
    tree: Sequence[session_pb2.Session],
    rises: Sequence[str],
    *,
    crp_headers: set[str],
) -> Iterator[str]:
    """Yield a sentence for every broken promise."""
    by_name = {agent_name(session): session for session in tree}
    missing = {"orchestrator", *SPECIALISTS} - by_name.keys()
    if missing:
        yield f"no session of {', '.join(sorted(missing))}"
        return
    yield from (f"the budget of {name} rose" for name in rises)
    if crp_headers:
        yield f"CRP headers reached the provider: {', '.join(sorted(crp_headers))}"
    yield from _crossed(steps)
    yield from _outcome(steps, by_name)


def _crossed(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for step in steps:
        leaked = NEVER.intersection(step.get("headers", ())) if step["event"] == "delegated to" else ()
        if leaked:
            yield f"{step['agent']} was sent {', '.join(sorted(leaked))}"


def _outcome(steps: Sequence[Mapping[str, Any]], by_name: Mapping[str, session_pb2.Session]) -> Iterator[str]:
    root, spent = by_name["orchestrator"], by_name["investment"]
    if not any(step["event"] == "answered" and step["question"] == SYNTHESIS for step in steps):
        yield "the orchestrator's answer from two specialists was not released"
    if breaker_state(spent) != "OPEN" or not _refused(steps, "investment"):
        yield "the specialist with unsupported answers was not halted"
    if root.safety_budget_micros > spent.safety_budget_micros or breaker_state(root) != "OPEN":
        yield "its spent budget did not reach the orchestrator"
    for name in ("storage", "health"):
        if breaker_state(by_name[name]) != "CLOSED":
            yield f"{name} did not keep its own budget"
    if len(_refused(steps, "orchestrator")) != 2:
        yield "the orchestrator was not refused a further answer and a further delegation"
    if any(session.loop_depth != (session.session_id != root.session_id) for session in by_name.values()):
        yield "a loop depth is wrong"


def _refused(steps: Sequence[Mapping[str, Any]], agent: str) -> list[Mapping[str, Any]]:
    return [s for s in steps if s["agent"] == agent and s["event"] == "refused" and s["status"] in {HALTED, 403}]
