"""Tool calls of an answer, tried as actions of the kernels of its session tree and its caller before it is released (KRN-11).

A rejected action is a finding: it stands in the report, costs the session a charge of its own, and the answer is not released. By
the directive ``halt-on-action`` it is a breach of the policy too, with all that follows from one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.settlement.tool_kernels import ToolKernel, ToolKernels

REFUSED = "KERNEL_ACTION_REFUSED"


@dataclass
class ActionTrials:
    """The tool calls of one governed call, tried in each of its kernels; without *find* none is tried."""

    find: Callable[[], Awaitable[Sequence[ToolKernel]]] | None
    charge: int
    """What a rejected action costs, millionths."""
    _refused_by: dict[str, str] = field(default_factory=dict)
    _for_model: dict[str, str] = field(default_factory=dict)

    async def tried(self, report: dpe_pb2.Report, answer: Completion) -> dpe_pb2.Report:
        """Return *report* with what the kernel says. A dry run: nothing is charged there, each action is tried by itself.

        What the kernel cannot answer is refused as it says.
        """
        called = sorted(set(_called(answer)))
        if not called:
            return report
        kernels = await self.find() if self.find else ()
        if not kernels:
            report.actions.untried = len(called)
            return report
        trial = dpe_pb2.ActionTrial()
        for name in called:
            await self._try(name, kernels, trial)
        trial.charge_micros = self.charge if trial.refused else 0
        report.actions.CopyFrom(trial)
        return report

    async def _try(self, action: str, kernels: Sequence[ToolKernel], trial: dpe_pb2.ActionTrial) -> None:
        """Note an action that one of the kernels would reject, the first in their order; or that it was not tried.

        It was not where there is no kernel, or where one that there is does not know it: that one did not say that it is allowed.
        """
        known, unknown = False, False
        for kernel in kernels:
            if kernel.missing:
                continue
            verdict = await kernel.verdict(action)
            known, unknown = known or verdict is not None, unknown or (verdict is None and not kernel.missing)
            if verdict is None or verdict.approved:
                continue
            self._refused_by[action] = "tree" if kernel.root else "caller"
            self._for_model[action] = _rejected(action) if kernel.foreign else verdict.for_model
            checks = [one.code for one in verdict.checks if not one.passed and not one.monitoring]
            trial.refused.add(action=action, checks=checks)
            return
        trial.untried += unknown or not known

    def decided(self, decision: policy_pb2.Decision, report: dpe_pb2.Report) -> policy_pb2.Decision:
        """Return what happens to an answer: one with a rejected action is halted for good, whatever else was decided.

        A remedy may be tried first, and a halt keeps its own reason.
        """
        if not report.actions.refused or decision.action in _REMEDIES:
            return decision
        if decision.action != policy_pb2.ACTION_HALT:
            decision.action, decision.reason, decision.halt_reason = policy_pb2.ACTION_HALT, REFUSED, REFUSED
        decision.releasable = decision.oversight_required = False
        return decision

    def refusal(self, decision: policy_pb2.Decision, report: dpe_pb2.Report) -> Refused | None:
        """Return why an answer that nothing else halts is not released: the first rejected action and its checks, for the model too."""
        if decision.reason != REFUSED:
            return None
        first = report.actions.refused[0]
        metadata = {
            "action": first.action, "checks": ",".join(first.checks), "for_model": self._for_model.get(first.action, ""),
            "kernel_of": self._refused_by.get(first.action, ""),
        }  # fmt: skip
        return Refused(
            Kind.FORBIDDEN, REFUSED, f"the kernel would reject the tool call {first.action}", metadata=metadata
        )


_REMEDIES = frozenset({policy_pb2.ACTION_REDISPATCH, policy_pb2.ACTION_CONTINUE, policy_pb2.ACTION_STITCH})


class ToolCalls:
    """Makes what tries the tool calls of a call."""

    def __init__(self, kernels: ToolKernels, charge: int) -> None:
        self._kernels, self._charge = kernels, charge

    def of(
        self, scope: str, opened: session_pb2.OpenedWindow, deadline: Deadline, *, token: str | None, observed: bool
    ) -> ActionTrials:
        """Return what tries the tool calls of a caller in a window; of one that is only watched none is."""
        if observed:
            return ActionTrials(None, self._charge)
        begun = opened.window_number == 1 and not opened.ancestor_session_ids and not opened.HasField("binding")
        find = partial(self._kernels.of, scope, opened, fresh=begun and not token, deadline=deadline)
        return ActionTrials(find, self._charge)


def _rejected(action: str) -> str:
    """Return what a model is told of a rejection by the kernel of somebody above, whose figures are not its caller's to know."""
    from interlock.domain.kernel.words import (
        for_model,
    )  # on use, so that a sidecar that nobody asks for a kernel stays small

    return for_model(action, (), {})


def _called(answer: Completion) -> Iterator[str]:
    for choice in answer.choices if answer.completion else ():
        message = choice["message"]
        yield from (call["function"]["name"] for call in message.get("tool_calls") or ())
        if function := message.get("function_call"):
            yield function["name"]
