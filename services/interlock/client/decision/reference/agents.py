"""Trainer, Analyst, Protocol and Strategy (SEED-5 §4). Each is a pure function: a new instance answers the same input alike.

They read these parts of the snapshot, each of which may be missing:

* ``metric``: name of the loss; ``losses``: the latest ones, in the order of the trials, the smaller the better;
* ``last``: the latest trial, ``{"trial": 7, "state": "COMPLETE", "value": 0.1}``, with ``error`` where its state is FAIL;
* ``budget``: ``limit`` and ``used``; ``planned``: trials after which the experiment ends if nobody extends it;
* ``search``: ``sampler`` in use, ``samplers`` that there are, ``shrunk_percent`` of the space; ``trial_active``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from interlock.client.decision.model import DecisionProposal, ExperimentSnapshot, Processed, Signal
from interlock.client.decision.reference import statistics
from interlock.client.decision.reference.statistics import SUREST
from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.words import ActionRisk, AgentAuthority

VERSION = "1"
BUDGET_LOW = 0.8
SHRINK_PERCENT, DIVERSITY = 30.0, 0.25
MOST_SHRUNK = 65.0
"""The strategy agent proposes no further shrinking beyond this part of the space."""
SURE_ENOUGH = 0.5
EARLY = 0.75


class TrainerAgent:
    """Observes trials: that one completed or failed, and whether training is unstable."""

    descriptor = AgentDescriptor(
        name="trainer", role="TRAINER", inputs=(), outputs=("trial_completed", "trial_failed", "instability"),
        authority=AgentAuthority.OBSERVE, risk=ActionRisk.LOW, version=VERSION,
    )  # fmt: skip

    def process(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        """Tell of the latest trial."""
        del signals
        last = _object(state.get("last"))
        trial = last.get("trial")
        found: list[Signal] = []
        if isinstance(trial, int) and last.get("state") == "FAIL":
            payload = {"trial": trial, "error": str(last.get("error", ""))[:200]}
            found.append(Signal(type="trial_failed", payload=payload, confidence=1.0))
        elif isinstance(trial, int) and _is_number(last.get("value")):
            payload = {"trial": trial, "value": last["value"]}
            found.append(Signal(type="trial_completed", payload=payload, confidence=1.0))
            if strange := statistics.outlier(_losses(state)):
                reason = f"the last loss has a modified z-score of {strange.value:.1f}"
                found.append(Signal(type="instability", payload={"reason": reason}, confidence=strange.confidence))
        return found, ()


class AnalystAgent:
    """Reasons about the metric: plateau, divergence, variance, drift. It proposes nothing."""

    descriptor = AgentDescriptor(
        name="analyst", role="ANALYST", inputs=("trial_completed", "trial_failed", "mutation_applied"),
        outputs=("metric_plateau", "metric_divergence", "high_variance", "drift_detected", "search_flat"),
        authority=AgentAuthority.SUGGEST, risk=ActionRisk.LOW, version=VERSION,
    )  # fmt: skip

    def process(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        """Signal what the losses say."""
        del signals
        losses, metric = _losses(state), str(state.get("metric", "loss"))[:200]
        told: list[tuple[str, statistics.SeriesFinding | None, str, Mapping[str, Any]]] = [
            ("metric_plateau", statistics.plateau(losses), "slope", {"metric": metric}),
            ("metric_divergence", statistics.divergence(losses), "rises", {"metric": metric}),
            ("high_variance", statistics.high_variance(losses), "cv", {"metric": metric}),
            ("drift_detected", statistics.drift(losses), "statistic", {"method": "CUSUM"}),
            ("search_flat", statistics.flatness(losses), "spread", {}),
        ]
        return [
            Signal(type=kind, payload={**more, figure: found.value}, confidence=found.confidence)
            for kind, found, figure, more in told
            if found is not None
        ], ()


class ProtocolAgent:
    """Chooses the method: the next sampler when the metric does not move."""

    descriptor = AgentDescriptor(
        name="protocol", role="PROTOCOL", inputs=("metric_plateau", "search_flat", "trial_failed"),
        outputs=("SWITCH_HPO", "CONTINUE"), authority=AgentAuthority.PROPOSE, risk=ActionRisk.MEDIUM, version=VERSION,
    )  # fmt: skip

    def process(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        """Propose the next sampler, unless a trial runs."""
        flat = _surest(signals, "metric_plateau", "search_flat")
        search = _object(state.get("search"))
        samplers = [one for one in search.get("samplers", ()) if isinstance(one, str)]
        current = search.get("sampler")
        left = samplers[samplers.index(current) + 1 :] if current in samplers else samplers
        if flat is None or not left or state.get("trial_active"):
            return (), ()
        rationale = (
            f"{flat.type} with confidence {flat.confidence:.2f}: {current or 'the sampler'} finds nothing better."
        )
        return (), [
            DecisionProposal(
                action_type="SWITCH_HPO", target="search", parameters={"sampler": left[0]}, rationale=rationale,
                expected_effect=f"{left[0]} proposes trials elsewhere.", confidence=flat.confidence,
                risk_level=ActionRisk.LOW, signals_used=[flat.id],
            )
        ]  # fmt: skip


class StrategyAgent:
    """Steers the experiment: narrows the search, extends it while it improves, stops it when nothing is left to win."""

    descriptor = AgentDescriptor(
        name="strategy", role="STRATEGY", inputs=("*",),
        outputs=("budget_low", "MUTATE_SEARCH", "EXTEND_TRIALS", "STOP_EXPERIMENT", "CONTINUE"),
        authority=AgentAuthority.PROPOSE, risk=ActionRisk.HIGH, version=VERSION,
    )  # fmt: skip

    def process(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        """Signal a low budget, and propose at most one action."""
        budget = _object(state.get("budget"))
        limit, used = budget.get("limit"), budget.get("used")
        emitted: list[Signal] = []
        if _is_number(limit) and _is_number(used) and statistics.utilization(used, limit) > BUDGET_LOW:
            part = statistics.utilization(used, limit)
            emitted.append(Signal(type="budget_low", payload={"utilization": part}, confidence=1.0))
        found = self._stop(state, signals) or self._extend(state, signals) or self._narrow(state, signals)
        return emitted, [found] if found else ()

    @staticmethod
    def _stop(state: ExperimentSnapshot, signals: Sequence[Signal]) -> DecisionProposal | None:
        """Stop once the best loss stands still and there is no other sampler and no space left to narrow."""
        flat, search = _surest(signals, "metric_plateau"), _object(state.get("search"))
        samplers = [one for one in search.get("samplers", ()) if isinstance(one, str)]
        exhausted = not samplers or search.get("sampler") == samplers[-1]
        if flat is None or flat.confidence < 0.8 or not exhausted or _shrunk(search) < MOST_SHRUNK or _is_early(state):
            return None
        return DecisionProposal(
            action_type="STOP_EXPERIMENT", target="experiment", confidence=flat.confidence, risk_level=ActionRisk.HIGH,
            rationale="The best loss stands still, the last sampler is in use and the search is narrow.",
            expected_effect="Trials that would find nothing are saved.", signals_used=[flat.id],
        )  # fmt: skip

    @staticmethod
    def _extend(state: ExperimentSnapshot, signals: Sequence[Signal]) -> DecisionProposal | None:
        """Extend a search that is about to end while its best loss still falls."""
        budget, planned = _object(state.get("budget")), state.get("planned")
        limit, used = budget.get("limit"), budget.get("used")
        losses = _losses(state)
        if not (_is_number(limit) and _is_number(used) and _is_number(planned)):
            return None
        if len(losses) < 10 or _surest(signals, "metric_plateau"):
            return None
        trials = min(10, math.floor(limit - max(used, planned)))
        falling, error = statistics.slope(statistics.running_best(losses)[-10:])
        if planned - used > 3 or trials <= 0 or falling + 2 * error >= 0:
            return None
        return DecisionProposal(
            action_type="EXTEND_TRIALS", target="experiment", parameters={"trials": trials}, confidence=0.8,
            risk_level=ActionRisk.MEDIUM, expected_effect=f"{trials} more trials while the best loss falls.",
            rationale=f"The best loss falls by {-falling:.2g} per trial, and the search is about to end.",
        )  # fmt: skip

    @staticmethod
    def _narrow(state: ExperimentSnapshot, signals: Sequence[Signal]) -> DecisionProposal | None:
        """Narrow the search around the best trials when it stands still."""
        flat, search = _surest(signals, "metric_plateau", "search_flat"), _object(state.get("search"))
        if flat is None or _shrunk(search) >= MOST_SHRUNK:
            return None
        return DecisionProposal(
            action_type="MUTATE_SEARCH", target="search", confidence=min(flat.confidence, SUREST),
            parameters={"shrink_percent": SHRINK_PERCENT, "diversity": DIVERSITY}, risk_level=ActionRisk.LOW,
            rationale=f"{flat.type} with confidence {flat.confidence:.2f}: the best trials say where to look.",
            expected_effect="Trials come nearer to the best ones.", signals_used=[flat.id],
        )  # fmt: skip


AGENTS = {
    one.descriptor.name: one for one in (TrainerAgent, AnalystAgent, ProtocolAgent, StrategyAgent)
}  # fmt: skip
"""The reference agents by name."""


def _surest(signals: Sequence[Signal], *types: str) -> Signal | None:
    found = [one for one in signals if one.type in types and one.confidence >= SURE_ENOUGH]
    return max(found, key=lambda one: (one.confidence, one.id), default=None)


def _is_early(state: ExperimentSnapshot) -> bool:
    """Return whether less than three quarters of the planned trials ran: ten trials that find nothing are common before."""
    planned, used = state.get("planned"), _object(state.get("budget")).get("used")
    return _is_number(planned) and _is_number(used) and used < EARLY * planned


def _losses(state: ExperimentSnapshot) -> list[float]:
    found = state.get("losses", ())
    return [float(one) for one in found if _is_number(one)] if isinstance(found, tuple) else []


def _shrunk(search: Mapping[str, Any]) -> float:
    found = search.get("shrunk_percent", 0)
    return float(found) if _is_number(found) else 0.0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
