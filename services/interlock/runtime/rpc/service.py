"""The interface of a service to the process that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

UnreadyDependencies = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns dependency → hint for each dependency that cannot be used now; empty means ready. Never raises."""
Close = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Service:
    """One opened service: its servicer, how to register it, how to ask whether it is ready, and how to close it."""

    name: str
    full_names: tuple[str, ...]
    """The gRPC services that it answers for, in full. Health and reflection tell them to callers."""
    servicer: Any
    register: Callable[[Any, Any], None]
    unready_dependencies: UnreadyDependencies
    close: Close
    identity: str = ""
    """Member of the mesh whose certificate it is served with; empty: its name."""
