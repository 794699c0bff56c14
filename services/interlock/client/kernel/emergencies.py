"""Emergency actions of the peer's client: they need no kernel that can be reached (T8)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls

_UNREGISTERED = frozenset({"KERNEL_NOT_FOUND", "KERNEL_EMERGENCY_UNKNOWN"})


def emergency(
    calls: KernelCalls, kernel: str, action: str, register: Callable[[], None], *, child: str = "", stop: bool = False
) -> tuple[Mapping[str, Any], str]:
    """Do an emergency action; return the verdict, and the key that names it.

    It is registered only where the kernel says that it is not: registering would wait for a kernel that cannot be reached.
    """
    key = uuid.uuid4().hex
    body = {"action": action, "stop": stop, "key": key, "child": child}
    try:
        told = calls.post(kernel, "emergency", body)
    except InterlockError as refused:
        if refused.reason not in _UNREGISTERED:
            raise
        register()
        told = calls.post(kernel, "emergency", body)
    verdict: Mapping[str, Any] = told["verdict"]
    return verdict, key


def recorded_at_ms(verdict: Mapping[str, Any]) -> int:
    """Return when the sidecar recorded an action that is not sealed yet, milliseconds since the epoch; 0 for one that is."""
    return int(verdict.get("recorded_at_ms", 0))
