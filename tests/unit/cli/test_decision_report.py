"""The page of a run: what each cycle heard, proposed, guarded and decided, and nothing of it as markup (DEC-6)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interlock.cli.decision_report.page import page
from interlock.domain.decision.reading import canonical
from interlock.oversight.runs.run import ShownRun, run_of
from tests.support.decisions import ANALYST, ML, PROTOCOL, STRATEGY, TRAINER, answer, decided, proposal, signal

pytestmark = [pytest.mark.req("DEC-6")]

HOSTILE = "<script>alert(1)</script>\u202e \x1b[31m"


def sealed(*answers: Any, **more: Any) -> tuple[str, str]:
    return ML, canonical(decided(*answers, **more))


def cycles() -> list[tuple[str, str]]:
    """One that switches after a signal, one whose proposal a guard rejects while an agent is late."""
    return [
        sealed(answer(ANALYST, signals=[signal()]), answer(PROTOCOL, proposal(rationale=HOSTILE)), cycle=1),
        sealed(
            answer(STRATEGY, proposal("strategy", "MUTATE_SEARCH", risk="HIGH", confidence="0.5")),
            answer(TRAINER, arrival="LATE"), cycle=2,
        ),
    ]  # fmt: skip


def run() -> ShownRun:
    return run_of("search", cycles())


def test_it_shows_signals_proposals_guards_and_decisions():
    """Each proposal has its rationale, its guards and what became of it; each decision its place."""
    shown = page(run())

    assert "All 2 cycles replay to the byte." in shown
    assert "metric_plateau of analyst, confidence 0.90" in shown
    assert "protocol/p1: SWITCH_HPO" in shown
    assert "guard: MUTATION_UNSTATED" in shown
    assert "risk: HIGH, confidence 500000, HIGH needs 800000: RISK_CONFIDENCE" in shown
    assert "trainer: late, active → degraded" in shown
    assert [proposal.outcome for one in run().cycles for proposal in one.proposals] == ["ACCEPTED", "GUARD"]


def test_what_agents_wrote_is_no_markup():
    """Tags are escaped, hidden characters are named, and the policy of the page admits no script and no load."""
    shown = page(run())

    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert "U+202E" in shown
    assert "\x1b" not in shown
    assert "default-src &#39;none&#39;" in shown
    assert not re.search(r'(src|href)="(?!#)', shown)


def test_a_trace_that_was_changed_is_told():
    """A sealed trace with another rationale is not what was decided."""
    definition, trace = cycles()[0]
    told = json.loads(trace)
    told["chosen"]["rationale"] = "another"
    shown = page(run_of("search", [(definition, canonical(told)), cycles()[1]]))

    assert "1 of 2 cycles do not replay" in shown
    assert shown.count("does not replay") == 1


def test_an_experiment_without_cycles_has_a_page():
    """Nothing was decided yet."""
    assert "Nothing was decided yet." in page(run_of("search", []))
