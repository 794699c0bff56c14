"""What agents may do, shared by any number of processes: ClampAI's names over Interlock's kernel (docs/kernel.md).

Code written for ``clampai`` runs with its import line changed. ``SafetyKernel(..., name="team")``, or INTERLOCK_KERNEL in the
environment, joins the kernel of that name under the caller's key; without a name each object has a kernel of its own.
"""

from interlock.client.kernel import invariants
from interlock.client.kernel.aio import AsyncSafetyKernel
from interlock.client.kernel.calls import KernelCalls
from interlock.client.kernel.guarding import SafetyViolation, safe
from interlock.client.kernel.lease import Lease
from interlock.client.kernel.model import ActionSpec, CheckResult, Effect, Invariant, SafetyVerdict, State, TraceEntry
from interlock.client.kernel.safety import SafetyKernel
from interlock.client.kernel.saga import Saga
from interlock.client.kernel.turns import Contended

__all__ = [
    "ActionSpec",
    "AsyncSafetyKernel",
    "CheckResult",
    "Contended",
    "Effect",
    "Invariant",
    "KernelCalls",
    "Lease",
    "SafetyKernel",
    "SafetyVerdict",
    "SafetyViolation",
    "Saga",
    "State",
    "TraceEntry",
    "invariants",
    "safe",
]
