"""Which kernels the tool calls of an answer are tried in: those of its session tree first, then the caller's own (KRN-11).

Each that there is has to allow an action. Any one of them would not do: whoever has a token could open a kernel of the tree's that allows
more than the caller's, and a sub-agent with a key of its own would be held by nothing that those above it opened.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.peers import SessionPeer

MOST_OWNERS = 10_000

_CHILD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_NO_ACTION = frozenset({"KERNEL_ACTION_UNKNOWN", "KERNEL_NAME_INVALID"})
"""What says that a tool is no action of a kernel: nobody registered it there."""


@dataclass
class ToolKernel:
    """One kernel in which the tools of a call are tried. *root* is empty for the caller's own; *child* is the agent's type."""

    kernels: Kernels
    name: str
    scope: str
    root: str
    child: str
    foreign: bool
    """Whether it belongs to another caller above: what it holds is not told to this one."""
    missing: bool = False
    """Whether there is no such kernel, as far as this call was told."""

    async def verdict(self, action: str) -> kernel_pb2.Verdict | None:
        """Return what the kernel says of an action; ``None`` where it is no action of this one, or there is no such kernel.

        In a kernel with a child that is named as the agent's type, it is that part which is asked: its limits, and all above it.
        """
        for child in [self.child, ""] if self.child else [""]:
            request = kernel_pb2.EvaluateRequest(kernel=self.name, action=action, child=child)
            try:
                found = await self.kernels.ask_in(self.scope, self.root, "evaluate", request)
            except Refused as refused:
                if refused.reason == "KERNEL_CHILD_UNKNOWN":
                    self.child = ""
                    continue
                self.missing = refused.reason == "KERNEL_NOT_FOUND"
                if self.missing or refused.reason in _NO_ACTION:
                    return None
                raise
            return found.evaluated.verdict
        return None


class ToolKernels:
    """Finds the kernels of calls."""

    def __init__(self, kernels: Kernels, sessions: SessionPeer, name: str) -> None:
        self._kernels, self._sessions, self._name = kernels, sessions, name
        self._owners: dict[str, str] = {}
        """Sessions → the scope that each was begun in, which never changes."""

    async def of(
        self, scope: str, opened: session_pb2.OpenedWindow, *, fresh: bool, deadline: Deadline
    ) -> Sequence[ToolKernel]:
        """Return the kernels that hold for a call: of the tree, for everybody above from the root down and for the caller; then the
        caller's own. Those that nobody opened are among them.

        *fresh*: the session began with this call, so that nobody can have opened a kernel of its tree yet.
        """
        if not self._name:
            return ()
        child = opened.agent.agent_type if _CHILD.fullmatch(opened.agent.agent_type) else ""
        root = opened.root_session_id
        above = [await self._owner(one, root, deadline) for one in reversed(opened.ancestor_session_ids)]
        trees = [] if fresh else [*dict.fromkeys([*above, scope])]
        places = [*((owner, root) for owner in trees), (scope, "")]
        return [ToolKernel(self._kernels, self._name, owner, of, child, foreign=owner != scope) for owner, of in places]

    async def _owner(self, session_id: str, root: str, deadline: Deadline) -> str:
        """Return whose session it is. What cannot be read is refused: a kernel above that nobody looked for allows nothing."""
        owner = self._owners.get(session_id)
        if owner is None:
            request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
            owner = (await self._sessions.get(request, deadline)).scope
            if len(self._owners) >= MOST_OWNERS:
                del self._owners[next(iter(self._owners))]
            self._owners[session_id] = owner
        return owner
