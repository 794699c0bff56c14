"""Tool calls of an answer, tried as actions of the caller's kernel before the answer is released (KRN-11).

A rejected action is a finding: it stands in the report, costs the session a charge of its own, and the answer is not released. By
the directive ``halt-on-action`` it is a breach of the policy too, with all that follows from one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.sidecar.openai.completion import Completion

REFUSED = "KERNEL_ACTION_REFUSED"

_UNMAPPED = frozenset({"KERNEL_NOT_FOUND", "KERNEL_ACTION_UNKNOWN", "KERNEL_NAME_INVALID"})
"""What says that a tool is no action: nobody registered it."""


@dataclass
class ActionTrials:
    """The tool calls of one governed call, tried at the kernel *name* of its caller; of no name: none is tried."""

    kernels: Kernels
    name: str
    scope: str
    charge: int
    """What a rejected action costs, millionths."""
    _for_model: dict[str, str] = field(default_factory=dict)

    async def tried(self, report: dpe_pb2.Report, answer: Completion) -> dpe_pb2.Report:
        """Return *report* with what the kernel says. A dry run: nothing is charged there, each action is tried by itself.

        What the kernel cannot answer is refused as it says.
        """
        called = sorted(set(_called(answer)))
        if not called:
            return report
        if not self.name:
            report.actions.untried = len(called)
            return report
        trial = dpe_pb2.ActionTrial()
        for name in called:
            await self._try(name, trial)
        trial.charge_micros = self.charge if trial.refused else 0
        report.actions.CopyFrom(trial)
        return report

    async def _try(self, action: str, trial: dpe_pb2.ActionTrial) -> None:
        """Note an action that the kernel would reject, or that it does not know: nobody said that it is allowed."""
        request = kernel_pb2.EvaluateRequest(kernel=self.name, action=action)
        try:
            found = await self.kernels.ask(self.scope, "", "evaluate", request)
        except Refused as refused:
            if refused.reason not in _UNMAPPED:
                raise
            trial.untried += 1
            return
        verdict = found.evaluated.verdict
        if not verdict.approved:
            self._for_model[action] = verdict.for_model
            checks = [one.code for one in verdict.checks if not one.passed and not one.monitoring]
            trial.refused.add(action=action, checks=checks)

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
            "action": first.action, "checks": ",".join(first.checks), "for_model": self._for_model.get(first.action, "")
        }  # fmt: skip
        return Refused(
            Kind.FORBIDDEN, REFUSED, f"the kernel would reject the tool call {first.action}", metadata=metadata
        )


_REMEDIES = frozenset({policy_pb2.ACTION_REDISPATCH, policy_pb2.ACTION_CONTINUE, policy_pb2.ACTION_STITCH})


class ToolCalls:
    """Makes what tries the tool calls of a call."""

    def __init__(self, kernels: Kernels, name: str, charge: int) -> None:
        self._kernels, self._name, self._charge = kernels, name, charge

    def of(self, scope: str, *, observed: bool) -> ActionTrials:
        """Return what tries the tool calls of a caller; of one that is only watched none is."""
        return ActionTrials(self._kernels, "" if observed else self._name, scope, self._charge)


def _called(answer: Completion) -> Iterator[str]:
    for choice in answer.choices if answer.completion else ():
        message = choice["message"]
        yield from (call["function"]["name"] for call in message.get("tool_calls") or ())
        if function := message.get("function_call"):
            yield function["name"]
