"""The data of the pages about decisions: experiments, a run on its time line, a cycle. What agents wrote goes in as ``said`` or ``quoted``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from interlock.api.audit.v1 import audit_pb2
from interlock.oversight.experiments import CycleView, RunView
from interlock.oversight.live.pages import NO_TEXT
from interlock.oversight.markup import quoted, render, said
from interlock.oversight.pages import Word, frame_of
from interlock.oversight.runs.run import ShownCycle, ShownProposal
from interlock.oversight.runs.timeline import timeline
from interlock.oversight.views import View
from interlock.runtime.clock import iso8601

_KINDS = {"ACTIVE": "active", "DEGRADED": "half-open", "PROBATION": "half-open", "FAILED": "open"}


def experiments_page(view: View, page: audit_pb2.ListExperimentsResponse) -> str:
    """Return the experiments that began last."""
    last = page.experiments[-1] if page.more else None
    following = urlencode({"before": f"{last.opened_at} {last.experiment_id}"}) if last else ""
    return render(
        "experiments.html", title="Decisions", **_frame(view), following=f"?{following}" if following else "",
        rows=[
            {"id": one.experiment_id, "name": said(one.experiment), "scope": one.scope, "opened_at": one.opened_at,
             "cycles": one.cycles, "outcome": said(one.last_outcome), "last_at": one.last_at} for one in page.experiments
        ],
    )  # fmt: skip


def run_page(view: View, shown: RunView) -> str:
    """Return a run: what was decided, on a time line with what was heard and who proposed, and each cycle in a line."""
    run = shown.run
    return render(
        "run.html", title=f"Decisions of {run.experiment}", **_frame(view), experiment_id=shown.experiment_id, scope=shown.scope,
        outcomes=[(said(outcome), often) for outcome, often in run.outcomes], same=run.same, count=len(run.cycles),
        line=timeline(run), cycles=[_line(one) for one in reversed(run.cycles)], earlier=shown.earlier,
        agents=_agents(run.cycles[-1]) if run.cycles else [],
    )  # fmt: skip


def cycle_page(view: View, shown: CycleView) -> str:
    """Return one cycle. Rationales, parameters, payloads, guards' words and the snapshot are content; the rest is figures."""
    cycle, trace, is_hidden = shown.cycle, shown.cycle.trace, bool(shown.hidden)
    return render(
        "cycle.html", title=f"Cycle {cycle.number} of {shown.name}", **_frame(view), experiment_id=shown.experiment_id,
        name=said(shown.name), line=_line(cycle), missing=NO_TEXT.get(shown.hidden, ""), is_hidden=is_hidden,
        signals=[_signal(one, is_hidden=is_hidden) for one in cycle.signals],
        left_out=[] if is_hidden else [_left_out(one) for one in trace["signals_rejected"]],
        proposals=[_proposal(one, is_hidden=is_hidden) for one in cycle.proposals],
        unread=[] if is_hidden else [_unread(one) for one in cycle.unread], agents=_agents(cycle),
        parameters="" if is_hidden or not trace["final_parameters"] else quoted(json.dumps(trace["final_parameters"], ensure_ascii=False), "parameters"),
        snapshot="" if is_hidden else quoted(str(trace["inputs"]["snapshot"]), "snapshot"), decision_id=trace["decision_id"],
        rules=trace["rules_hash"][:12], snapshot_hash=trace["snapshot_hash"][:12],
    )  # fmt: skip


def _frame(view: View) -> Mapping[str, Any]:
    return {**frame_of(view), "here": "decisions"}


def _line(cycle: ShownCycle) -> Mapping[str, Any]:
    chosen = cycle.trace["chosen"]
    return {
        "number": cycle.number, "at": iso8601(cycle.at_us), "outcome": said(cycle.outcome), "replays": cycle.replays,
        "by": said(chosen["agent"]) if chosen else "", "signals": len(cycle.signals), "proposals": len(cycle.proposals),
        "rejected": len(cycle.trace["rejected"]),
    }  # fmt: skip


def _agents(cycle: ShownCycle) -> list[Mapping[str, Any]]:
    return [
        {"name": said(one["agent"]), "arrival": str(one["arrival"]).lower(), "before": str(one["status_before"]).lower(),
         "status": Word(str(one["status_after"]), _KINDS.get(str(one["status_after"]), "none")),
         "fault": said(str(one["fault"])), "spoke": "" if one["spoke"] == "AGENT" else str(one["spoke"]).lower()}
        for one in cycle.trace["agents"]
    ]  # fmt: skip


def _signal(one: Mapping[str, Any], *, is_hidden: bool) -> Mapping[str, Any]:
    payload = "" if is_hidden else json.dumps(one.get("payload", {}), ensure_ascii=False)
    return {
        "type": said(one["type"]), "source": said(one["source"]), "confidence": f"{one['confidence'] / 1_000_000:.2f}",
        "payload": said(payload),
    }  # fmt: skip


def _left_out(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": said(str(one["type"])), "source": said(str(one["source"])), "reason": said(str(one["reason"]))}


def _unread(one: Mapping[str, Any]) -> Mapping[str, Any]:
    place = f"{one['agent']}/{one['proposal_id']}"
    return {"place": said(place), "outcome": str(one["outcome"]).lower(), "reason": said(str(one["reason"]))}


def _proposal(one: ShownProposal, *, is_hidden: bool) -> Mapping[str, Any]:
    told = one.said
    kind = "grounded" if one.outcome == "ACCEPTED" else "none" if one.outcome == "OUTSCORED" else "high"
    content = {} if is_hidden else {
        "rationale": quoted(str(told["rationale"]), "rationale"), "expects": said(str(told["expected_effect"])),
        "parameters": said(one.parameters) if told["parameters"] else "", "reason": said(one.reason),
        "guards": [(said(line), line.endswith(": ok")) for line in one.guards],
    }  # fmt: skip
    return {
        "place": said(f"{told['agent']}/{told['id']}"), "action": said(str(told["action_type"])),
        "outcome": Word(one.outcome.lower(), "low" if one.outcome == "ACCEPTED" else kind), "risk": str(told["risk_level"]),
        "confidence": f"{one.confidence:.2f}", "score": "" if one.score is None else f"{one.score:.2f}",
        "by": str(told["by"]).lower(), "content": content or None,
    }  # fmt: skip
