"""Agents that propose, and experiments that are decided for: the client of the decision protocol (SEED-5; docs/decision.md).

An agent is a descriptor and ``process(state, signals) -> (signals, proposals)``; ``run(agent)`` serves it. The owner of an experiment
uses ``ExperimentClient``, or in a study of Optuna ``interlock.client.decision.search.OptunaCallback``.
"""

from typing import Any

from interlock.client.decision.model import DecisionAgent, DecisionProposal, ExperimentSnapshot, Processed, Signal
from interlock.client.decision.owner import CycleDecision, ExperimentClient
from interlock.client.decision.places import DecisionRefusedError
from interlock.client.decision.running import arun, run
from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.words import ActionRisk, AgentAuthority

__all__ = [
    "ActionRisk",
    "AgentAuthority",
    "AgentDescriptor",
    "CycleDecision",
    "DecisionAgent",
    "DecisionProposal",
    "DecisionRefusedError",
    "ExperimentClient",
    "ExperimentSnapshot",
    "OptunaCallback",
    "Processed",
    "Signal",
    "arun",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import ``OptunaCallback`` when it is named: an agent needs no Optuna."""
    if name == "OptunaCallback":
        from interlock.client.decision.search import OptunaCallback

        return OptunaCallback
    raise AttributeError(name)
