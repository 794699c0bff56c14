"""Tool calls of an answer, tried as actions of the caller's kernel before the answer is released (KRN-11)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.errors import Kind, Refused
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.settlement.kernels import Kernels

_UNMAPPED = frozenset({"KERNEL_NOT_FOUND", "KERNEL_ACTION_UNKNOWN", "KERNEL_NAME_INVALID"})
"""What says that a tool is no action: nobody registered it."""


class ToolCalls:
    """Tries tool calls at the kernel of one name that each caller may have; of no name: lets all pass."""

    def __init__(self, kernels: Kernels, name: str) -> None:
        self._kernels, self._name = kernels, name

    async def require(self, scope: str, answer: Completion) -> None:
        """Refuse an answer with a tool call that the kernel would reject, with KERNEL_ACTION_REFUSED and why.

        A dry run: nothing is charged or reserved, each call is tried by itself. What the kernel cannot answer is refused as it says.
        """
        if not self._name:
            return
        for action in sorted(set(_called(answer))):
            request = kernel_pb2.EvaluateRequest(kernel=self._name, action=action)
            try:
                found = await self._kernels.ask(scope, "", "evaluate", request)
            except Refused as refused:
                if refused.reason in _UNMAPPED:
                    continue
                raise
            verdict = found.evaluated.verdict
            if not verdict.approved:
                failed = [one.code for one in verdict.checks if not one.passed and not one.monitoring]
                metadata = {"action": action, "checks": ",".join(failed), "for_model": verdict.for_model}
                message = f"the kernel would reject the tool call {action}"
                raise Refused(Kind.FORBIDDEN, "KERNEL_ACTION_REFUSED", message, metadata=metadata)


def _called(answer: Completion) -> Iterator[str]:
    for choice in answer.choices if answer.completion else ():
        message = choice["message"]
        yield from (call["function"]["name"] for call in message.get("tool_calls") or ())
        if function := message.get("function_call"):
            yield function["name"]
